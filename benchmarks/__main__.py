"""Measure Bedrax and compare it with upstream JAX, autograd and optree. `python -m benchmarks --help`."""

import argparse
import re
import sys
from pathlib import Path

from rich.console import Console

from . import cases, environments, history, measure, report

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", metavar="PATTERN", help="only cases whose names match (regex)")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds: rougher numbers")
    parser.add_argument("--rounds", type=int, help="turns of every environment (8; quick: 2)")
    parser.add_argument("--seconds", type=float, help="CPU seconds per turn (0.2; quick: 0.1)")
    parser.add_argument(
        "--ours", type=Path, metavar="PYTHON", help="measure the sources with this interpreter, not a new environment"
    )
    parser.add_argument(
        "--use",
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help=f"an existing interpreter for an environment; NAME is one of {', '.join(environments.NAMES)}",
    )
    parser.add_argument(
        "--python",
        metavar="PYTHON",
        help="measure on this newer Python with the newest jaxlib and upstream; --write writes newest.md",
    )
    parser.add_argument("--json", type=Path, default=HERE / "out" / "results.json", help="the file for the samples")
    parser.add_argument("--write", action="store_true", help="write the results into the table of benchmarks/README.md")
    parser.add_argument("--record", action="store_true", help="keep the ratios under benchmarks/history, and draw all")
    parser.add_argument(
        "--compare", action="store_true", help="exit with 1 if a ratio is 5 %% above the last one of the history, twice"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 if a case of ours fails or misses its target")
    args = parser.parse_args()
    if args.python and args.record:
        parser.error("--record keeps the ratios on the oldest Python; leave out --python")

    groups = cases.load()
    chosen = {
        group: found
        for group, table in groups.items()
        if (found := [case for case in table if re.search(args.only, case.name)])
    }
    if not chosen:
        parser.error(f"no case matches {args.only!r}")
    needed = {"ours"}.union(*(map(measure.environment_of, case.peers) for table in chosen.values() for case in table))
    given = dict(use.partition("=")[::2] for use in args.use)
    if unknown := given.keys() - set(environments.NAMES):
        parser.error(f"--use names {', '.join(unknown)}; there are {', '.join(environments.NAMES)}")
    console = Console()
    available = {}
    for name in environments.NAMES:
        if name in given:
            available[name] = environments.Environment(name, given[name])
        elif name == "ours" and args.ours:
            available[name] = environments.Environment(name, args.ours, sources=True)
        elif name in needed:
            with console.status(f"making the environment {name}"):
                available[name] = environments.make(name, args.python)
    versions = {name: environment.versions() for name, environment in available.items()}

    rounds = args.rounds or (2 if args.quick else 8)
    seconds = args.seconds or (0.1 if args.quick else 0.2)
    measured = []
    for table in chosen.values():
        for case, results in measure.measure(table, available, rounds, seconds):
            report.print_row(console, case, results)
            measured.append((case, results))
    report.print_table(console, measured)
    report.save_json(args.json, measured, versions)
    if args.record:  # before --write, which changes files of the commit
        console.print(f"recorded in {history.record(measured, versions, HERE.parent)}")
        (HERE / "history.svg").write_text(history.draw(history.load()), encoding="utf-8")
    if args.write:
        every = [case for table in groups.values() for case in table]
        report.update_readme(HERE / ("newest.md" if args.python else "README.md"), measured, versions, every)
    if args.compare and not compare(console, measured, chosen, available, rounds, seconds):
        sys.exit(1)
    bad = [case.name for case, results in measured if report.verdict(case, results) in ("missed", "fails")]
    if args.check and bad:
        console.print(f"[bold red]{len(bad)} of {len(measured)} cases fail or miss their target[/]")
        sys.exit(1)


def compare(console, measured, chosen, available, rounds, seconds) -> bool:
    """Print the cases that became slower than in the history. They are measured again: noise is rarely slow twice."""
    past = history.load()
    slower = {name for name, *_ in history.regressions(history.numbers(measured), past)}
    again = [
        pair
        for table in chosen.values()
        if (cases_again := [case for case in table if case.name in slower])
        for pair in measure.measure(cases_again, available, rounds, seconds)
    ]
    found = history.regressions(history.numbers(again), past)
    for name, old, new, commit in found:
        console.print(f"[bold red]{name}: {old:.3g} at {commit}, {new:.3g} now ({new / old - 1:+.0%})[/]")
    known = history.before(past)
    compared = sum(case.name in known for case, _ in measured)
    console.print(f"{compared} of {len(measured)} cases compared with {len(past)} commits, {len(found)} are slower")
    return not found


if __name__ == "__main__":
    main()
