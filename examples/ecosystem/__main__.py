"""Run each program of `programs/` in its own process, and print a row of the table for each.

`python -m examples.ecosystem [--suites FOLDER] [--page] [--peer PYTHON] [NAME ...]`: `--suites` runs the libraries' own
tests instead, from source distributions in a folder (missing ones are downloaded). `--peer` is the Python of a second
environment; its results stand next to ours. `--page` writes the rows into the tables of README.md.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from . import suites

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
# The distribution of a program that has another name, and the environment of a library's own suite.
DISTRIBUTION = {
    "array_api": "array-api-compat",
    "flax_checkpoints": "flax",
    "flax_linen": "flax",
    "flax_nnx": "flax",
    "haiku": "dm-haiku",
    "numpyro_tfp": "numpyro",
    "orbax": "orbax-checkpoint",
    "ott": "ott-jax",
    "tensorflow_probability": "tfp-nightly",
}
MARK, SUITES_MARK = "<!-- table -->", "<!-- suites -->"


def names() -> list[str]:
    """The names of all programs."""
    return sorted(p.stem for p in PROGRAMS.glob("*.py"))


def version(name: str) -> str:
    """The version of the installed library of a program."""
    return importlib.metadata.version(DISTRIBUTION.get(name, name.replace("_", "-")))


def run(python: str, name: str, limit: float = 900) -> tuple[str, float]:
    """(`works`, or the kind of failure; seconds) of a program."""
    start = time.perf_counter()
    command = [
        python,
        "-P",
        "-W",
        "ignore",
        str(PROGRAMS / f"{name}.py"),
    ]  # -P: a file here may have the name of a library
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"no end after {limit:.0f} s", limit
    seconds = time.perf_counter() - start
    if done.returncode == 0:
        return "works", seconds
    lines = [line for line in done.stderr.splitlines() if re.match(r"[\w.]+(Error|Exception|Exit)\b", line)]
    return (lines or done.stderr.splitlines() or [f"exit status {done.returncode}"])[-1][:160], seconds


def purpose(name: str) -> str:
    """The purpose of a program: the first line of its file."""
    return (PROGRAMS / f"{name}.py").read_text().split('"""')[1].split("\n")[0].rstrip(".")


def replaced(page: str, row: str, mark: str = MARK) -> str:
    """`page` with `row` in the table between two marks. The table has one row for each pair of first cells, in their
    order."""
    before, table, after = page.split(mark)
    head, rule, *rows = table.strip().split("\n")
    kept = {tuple(cell.strip() for cell in line.split("|")[1:3]): line for line in [*rows, row]}
    return f"{before}{mark}\n\n" + "\n".join([head, rule, *(kept[k] for k in sorted(kept))]) + f"\n\n{mark}{after}"


def ours() -> str:
    """The second cell of a row: the versions of this Python and its jaxlib."""
    return f"{sys.version_info.major}.{sys.version_info.minor} / {importlib.metadata.version('jaxlib')}"


def theirs(python: str | None) -> str:
    """The version of upstream in the environment of another Python, as a prefix of the cells with its results."""
    if python is None:
        return ""
    ask = "import importlib.metadata as m; print(m.version('jax'), end=': ')"
    return subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout


def publish(row: str, options: argparse.Namespace, mark: str = MARK) -> None:
    """Print a row. With `--page`, also write it into README.md now, so that an interrupted run keeps its results."""
    print(row, flush=True)
    if options.page:
        page = HERE / "README.md"
        page.write_text(replaced(page.read_text(), row, mark))


def programs(options: argparse.Namespace) -> list[str]:
    """Run programs. Returns the names of those that failed."""
    failed, peer = [], theirs(options.peer)
    for name in options.names or names():
        state, seconds = run(sys.executable, name)
        there = run(options.peer, name) if options.peer else ("", 0.0)
        if state != "works":
            failed.append(name)
        times = f"{seconds:.0f}" + (f" / {there[1]:.0f}" if options.peer else "")
        publish(
            f"| {name} | {ours()} | {version(name)} | {purpose(name)} | {state} | {peer}{there[0]} | {times} |", options
        )
    return failed


def counted(counts: Counter[str]) -> str:
    """The counts as text, such as `12 passed, 1 failed`."""
    return ", ".join(f"{counts[state]} {state}" for state in ("passed", "failed", "skipped") if counts[state])


def own_suites(options: argparse.Namespace) -> list[str]:
    """Run shares of the libraries' own tests. Returns the tests with an unexplained failure here and none upstream."""
    unexplained, peer = [], theirs(options.peer)
    for name in options.names or sorted(suites.SHARES):
        root = suites.source(name, importlib.metadata.version(name), options.suites)
        counts, failed = suites.run(sys.executable, root, suites.SHARES[name])
        there, failed_there = suites.run(options.peer, root, suites.SHARES[name]) if options.peer else (Counter(), {})
        both = [test for test in failed if test in failed_there]
        reasons, rest = suites.explained(name, {test: why for test, why in failed.items() if test not in failed_there})
        notes = [f"{len(both)} fail on both"] * bool(both)
        notes += [f"{n}: {why}" for why, n in reasons.items()] + [f"{len(rest)} not explained"] * bool(rest)
        share = suites.SHARES[name].replace("_test.py", "").replace(" ", ", ")
        cells = [
            name,
            ours(),
            root.name.rpartition("-")[2],
            share,
            counted(counts),
            peer + counted(there),
            "; ".join(notes),
        ]
        publish(f"| {' | '.join(cells)} |", options, SUITES_MARK)
        for test, why in failed.items():
            print("   ", test, "|", why, "| on both" * (test in failed_there), flush=True)
        unexplained += [f"{name}: {test}" for test in rest]
    return unexplained


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--suites", type=Path, metavar="FOLDER", help="run the libraries' own tests; the folder of their sources"
    )
    parser.add_argument("--peer", help="the Python of another environment with the same libraries")
    parser.add_argument("--page", action="store_true", help="write the table into README.md")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    failed = own_suites(options) if options.suites else programs(options)
    print(f"{len(failed)} of them failed", *failed, sep="\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
