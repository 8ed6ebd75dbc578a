"""Run each program of `programs/` in its own process, and print a row of the table for each.

`python -m tests.ecosystem [--suites FOLDER] [--page] [--peer PYTHON] [NAME ...]`: `--suites` runs the libraries' own
tests instead, from source distributions in a folder (missing ones are downloaded): shares of them, all with `--whole`, or
every Nth file with `--every N`;
a name is that of a library, or of a file in it, such as `flax/tests/struct_test.py`. `--peer` is the Python of a second
environment; its results stand next to ours. `--page` writes the rows into the tables of README.md, and the results of
suites into suites.json; `--missing` runs only files that suites.json lacks.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import re
import subprocess
import sys
import time
from collections.abc import Iterable
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
    return (PROGRAMS / f"{name}.py").read_text(encoding="utf-8").split('"""')[1].split("\n")[0].rstrip(".")


def replaced(page: str, row: str) -> str:
    """`page` with `row` in the table of programs. The table has one row for each pair of first cells, in their
    order."""
    before, table, after = page.split(MARK)
    head, rule, *rows = table.strip().split("\n")
    kept = {tuple(cell.strip() for cell in line.split("|")[1:3]): line for line in [*rows, row]}
    return f"{before}{MARK}\n\n" + "\n".join([head, rule, *(kept[k] for k in sorted(kept))]) + f"\n\n{MARK}{after}"


def ours() -> str:
    """The second cell of a row: the versions of this Python and its jaxlib."""
    return f"{sys.version_info.major}.{sys.version_info.minor} / {importlib.metadata.version('jaxlib')}"


def theirs(python: str | None) -> str:
    """The version of upstream in the environment of another Python, as a prefix of the cells with its results."""
    if python is None:
        return ""
    ask = "import importlib.metadata as m; print(m.version('jax'), end=': ')"
    return subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout


def publish(row: str, options: argparse.Namespace) -> None:
    """Print a row. With `--page`, also write it into README.md now, so that an interrupted run keeps its results."""
    print(row, flush=True)
    if options.page:
        page = HERE / "README.md"
        page.write_text(replaced(page.read_text(encoding="utf-8"), row), encoding="utf-8")


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


def own_suites(options: argparse.Namespace) -> list[str]:
    """Run the libraries' own tests. Returns the tests that fail here and not upstream, without a known reason."""
    unexplained, upstream = [], theirs(options.peer).rstrip(": ")
    wanted: dict[str, list[str]] = {}
    for name in options.names or [n for n in sorted(suites.SHARES) if options.whole or suites.SHARES[n]]:
        library, _, file = name.partition("/")
        wanted.setdefault(library, []).extend([file] if file else [])
    for name, chosen in wanted.items():
        root = suites.source(name, importlib.metadata.version(name), options.suites)
        everything = suites.files(root)
        whole = options.whole or options.every > 1
        chosen = [f for part in chosen for f in (suites.files(root, part) if (root / part).is_dir() else [part])]
        chosen = chosen or (everything[:: options.every] if whole else suites.files(root, suites.SHARES[name]))
        about = {"version": importlib.metadata.version(name), "of": len(everything)}
        about |= {"upstream": upstream} if upstream else {}
        if options.budget:  # many small files first
            chosen = sorted(chosen, key=lambda file: (root / file).stat().st_size)
        begin = time.perf_counter()
        for first in range(0, len(chosen), options.together):
            if options.budget and time.perf_counter() - begin > options.budget:
                break
            unexplained += run_group(name, root, chosen[first : first + options.together], about, options)
    return unexplained


def run_group(name: str, root: Path, group: Iterable[str], about: dict, options: argparse.Namespace) -> list[str]:
    """Run files of a library's suite in one process here; upstream, in another one, runs the tests that fail here.
    Returns the tests that fail here and not upstream, without a known reason."""
    files = suites.recorded(suites.read(), name, ours(), about)
    new: dict[str, dict] = {file: files.get(file, {}) for file in group}
    for side, python in [("here", sys.executable), *([("upstream", options.peer)] if options.peer else [])]:
        wanted = [file for file, done in new.items() if not (options.missing and side in done)]
        only = None
        if side == "upstream":
            only = {file: failed for file in wanted if (failed := new[file].get("here", {}).get("failed"))}
            wanted = [*only]
        if not wanted:
            continue
        start = time.perf_counter()
        found = suites.run(
            python,
            root,
            wanted,
            options.limit,
            suites.DEVICES.get(name, 1),
            share=options.share,
            limit_of_a_test=options.limit_of_a_test,
            only=only,
        )
        print(f"{name} {side}: {suites.counts([*found.values()])}, {time.perf_counter() - start:.0f} s", flush=True)
        for file, result in found.items():
            new[file] = new[file] | {side: result}
            print(f"  {name}/{file}: {suites.counts([result])}", flush=True)
            for test, why in result.get("failed", {}).items():
                print("     ", test, "|", why, flush=True)
    new = {file: done for file, done in new.items() if done}
    if options.page and new:
        record = suites.read()
        suites.recorded(record, name, ours(), about).update(new)
        suites.write(record)
        write_suites(record)
    return [
        f"{name}: {test}"
        for done in new.values()
        for test, why in suites.alone(done).items()
        if suites.reason(name, test, why) == "open"
    ]


def write_suites(record: dict) -> None:
    """Write the table of the suites into README.md."""
    page = HERE / "README.md"
    before, table, after = page.read_text(encoding="utf-8").split(SUITES_MARK)
    lines = [*table.strip().split("\n")[:2], *suites.rows(record)]
    page.write_text(f"{before}{SUITES_MARK}\n\n" + "\n".join(lines) + f"\n\n{SUITES_MARK}{after}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--suites", type=Path, metavar="FOLDER", help="run the libraries' own tests; the folder of their sources"
    )
    parser.add_argument("--whole", action="store_true", help="run all files of the suites")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run every Nth file of the suites")
    parser.add_argument("--share", type=int, default=0, metavar="N", help="run at most N tests of each file")
    parser.add_argument("--together", type=int, default=1, metavar="N", help="run N files of a suite in one process")
    parser.add_argument(
        "--limit-of-a-test", type=float, default=suites.LIMIT_OF_A_TEST, help="seconds that a test of a suite may take"
    )
    parser.add_argument("--missing", action="store_true", help="run only files that suites.json lacks")
    parser.add_argument("--budget", type=float, help="seconds that a suite may take; its smallest files are first")
    parser.add_argument("--limit", type=float, default=suites.LIMIT, help="seconds that a process of a suite may take")
    parser.add_argument("--peer", help="the Python of another environment with the same libraries")
    parser.add_argument("--page", action="store_true", help="write the table into README.md")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    failed = own_suites(options) if options.suites else programs(options)
    print(f"{len(failed)} of them failed", *failed, sep="\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
