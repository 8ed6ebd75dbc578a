"""Run each program of `programs/` in a process of its own; print a row of the table for each.

`python -m examples.ecosystem [--page] [--peer PYTHON] [NAME ...]`: `--peer` is the Python of a second environment whose
results stand beside ours; `--page` writes the table into README.md.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
# The distribution of a program that is not named like it, and where a suite of the library's own is run.
DISTRIBUTION = {
    "array_api": "array-api-compat", "flax_checkpoints": "flax", "flax_linen": "flax", "flax_nnx": "flax", "haiku": "dm-haiku",
    "numpyro_tfp": "numpyro", "orbax": "orbax-checkpoint", "ott": "ott-jax", "tensorflow_probability": "tfp-nightly",
}  # fmt: skip
MARK = "<!-- table -->"


def names() -> list[str]:
    """Of every program."""
    return sorted(p.stem for p in PROGRAMS.glob("*.py"))


def version(name: str) -> str:
    """Of the installed library that a program uses."""
    return importlib.metadata.version(DISTRIBUTION.get(name, name.replace("_", "-")))


def run(python: str, name: str, limit: float = 900) -> tuple[str, float]:
    """(`works`, or how it failed; seconds) of a program."""
    start = time.perf_counter()
    command = [
        python,
        "-P",
        "-W",
        "ignore",
        str(PROGRAMS / f"{name}.py"),
    ]  # -P: a file here may be named like a library
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
    """What a program does: the first line of its file."""
    return (PROGRAMS / f"{name}.py").read_text().split('"""')[1].split("\n")[0].rstrip(".")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", help="the Python of another environment with the same libraries")
    parser.add_argument("--page", action="store_true", help="write the table into README.md")
    parser.add_argument("names", nargs="*", default=names())
    options = parser.parse_args()
    rows = ["| program | version | what it does | here | upstream 0.10.2 | seconds |", "|---|---|---|---|---|---|"]
    failed = []
    for name in options.names:
        state, seconds = run(sys.executable, name)
        there = run(options.peer, name) if options.peer else ("", 0.0)
        if state != "works":
            failed.append(name)
        times = f"{seconds:.0f}" + (f" / {there[1]:.0f}" if options.peer else "")
        rows.append(f"| {name} | {version(name)} | {purpose(name)} | {state} | {there[0]} | {times} |")
        print(rows[-1], flush=True)
    if options.page:
        page = (HERE / "README.md").read_text().split(MARK)
        (HERE / "README.md").write_text(f"{page[0]}{MARK}\n\n" + "\n".join(rows) + f"\n\n{MARK}{page[2]}")
    print(f"{len(options.names) - len(failed)} of {len(options.names)} programs work", *failed)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
