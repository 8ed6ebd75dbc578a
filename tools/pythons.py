"""The Pythons that this repository supports, and the checks that passed on each.

    python tools/pythons.py find              prints the Pythons of this machine that are in the table, with their paths
    python tools/pythons.py record WHAT ...   adds WHAT to the row of the current Python, with its installed jaxlib
    python tools/pythons.py write             writes the classifiers of every pyproject.toml and the table of README.md

The table is `tests/pythons.json`. A session of nox with `--record` adds the checks that passed in it, so every entry
was run. A record with another jaxlib replaces the row. A test compares the table with the classifiers, with README.md
and with uv.lock.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests" / "pythons.json"
PYPROJECTS = sorted(ROOT.glob("packages/*/pyproject.toml"))
# The checks, in the order of README's table, with their names there.
PASSED = {
    "tests": "all tests",
    "sample": "a sample of the tests",
    "bounds": "the packages' tests with the oldest libraries that the metadata allow",
    "bounds-sample": "a sample of the packages' tests with the oldest libraries that the metadata allow",
    "demo": "the worked example",
    "packages": "each package alone",
    "flax": "Flax from PyPI with our wheels",
    "smoke": "arrays, `jit`, derivatives, random numbers",
}
MARK = "<!-- pythons -->"


def table() -> dict[str, dict]:
    """A row for each Python, oldest first: the jaxlib, and the checks that passed."""
    return json.loads(TABLE.read_text(encoding="utf-8"))


def number(python: str) -> tuple[int, ...]:
    return tuple(map(int, python.split(".")))


def named(environ=os.environ) -> list[str]:
    """Commands that may be a Python: those in NEWER_PYTHON (separated as in PATH) and UV_PYTHON, then those on the
    path."""
    commands = [*environ.get("NEWER_PYTHON", "").split(os.pathsep), environ.get("UV_PYTHON", "")]
    folders = environ.get("PATH", "").split(os.pathsep)
    names = [f"python{python}" for python in reversed(table())]
    return [sys.executable, *filter(None, commands), *(os.path.join(f, n) for n in names for f in folders if f)]


def version_of(command: str) -> str | None:
    """`3.13` for the command of such a CPython; None if it does not run: a shim on the path may have no target."""
    ask = "import platform, sys; print(platform.python_implementation(), '%d.%d' % sys.version_info[:2])"
    if (path := shutil.which(command)) is None:
        return None
    try:
        done = subprocess.run([path, "-I", "-c", ask], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    implementation, _, version = done.stdout.strip().partition(" ")
    return version if done.returncode == 0 and implementation == "CPython" else None


def found(candidates: list[str] | None = None) -> dict[str, str]:
    """The first command of each Python of the table that runs, oldest first: `{"3.11": PATH, ...}`."""
    paths: dict[str, str] = {}
    for command in named() if candidates is None else candidates:
        if (version := version_of(command)) in table():
            paths.setdefault(version, shutil.which(command))
    return {version: paths[version] for version in table() if version in paths}


def without_wheels(project: dict) -> tuple[int, ...] | None:
    """The first Python for which a project lacks a requirement; None if there is none."""
    needed = project["dependencies"] + project.get("optional-dependencies", {}).get("tf", [])  # one of two extras
    bounds = [re.search(r"python_version < '([\d.]+)'", requirement) for requirement in needed]
    return min((number(bound[1]) for bound in bounds if bound), default=None)


def classifiers(project: dict) -> list[str]:
    """The classifiers of a project: the Pythons of the table that have all its requirements, and its own others."""
    language = "Programming Language :: Python :: 3"
    end = without_wheels(project)
    pythons = [python for python in table() if end is None or number(python) < end]
    others = [c for c in project["classifiers"] if not c.startswith(language)]
    return [language, *(f"Programming Language :: Python :: {python}" for python in pythons), *others]


def rows() -> str:
    """README's table."""
    lines = ["| Python | jaxlib in the lock | what passes |", "|---|---|---|"]
    for python, row in table().items():
        passed = [text for what, text in PASSED.items() if what in row["passed"]]
        lines.append(f"| {python} | {row['jaxlib']} | {'; '.join(passed)} |")
    return "\n".join(lines)


def record(what: list[str]) -> None:
    """Add checks that passed with the installed jaxlib to the row of this Python."""
    import importlib.metadata

    if unknown := [each for each in what if each not in PASSED]:
        raise SystemExit(f"expected some of {', '.join(PASSED)}; got {', '.join(unknown)}")
    python, jaxlib, all_rows = "{}.{}".format(*sys.version_info), importlib.metadata.version("jaxlib"), table()
    row = all_rows.get(python)
    kept = row["passed"] if row and row["jaxlib"] == jaxlib else []
    all_rows[python] = {"jaxlib": jaxlib, "passed": [each for each in PASSED if each in {*kept, *what}]}
    TABLE.write_text(
        json.dumps(dict(sorted(all_rows.items(), key=lambda item: number(item[0]))), indent=2) + "\n", encoding="utf-8"
    )


def write() -> None:
    """Write the parts that follow from the table into the pyproject files and README.md."""
    for path in PYPROJECTS:
        text = path.read_text(encoding="utf-8")
        lines = "".join(f'    "{each}",\n' for each in classifiers(tomllib.loads(text)["project"]))
        text = re.sub(r"^classifiers = \[.*?\]$", lambda _: f"classifiers = [\n{lines}]", text, flags=re.M | re.S)  # noqa: B023
        text = re.sub(r'^requires-python = ".*"$', f'requires-python = ">={next(iter(table()))}"', text, flags=re.M)
        path.write_text(text, encoding="utf-8")
    readme = ROOT / "README.md"
    before, _, after = readme.read_text(encoding="utf-8").split(MARK)
    readme.write_text(f"{before}{MARK}\n\n{rows()}\n\n{MARK}{after}", encoding="utf-8")


def main(arguments: list[str]) -> None:
    match arguments:
        case ["find"]:
            print(*(f"{version} {path}" for version, path in found().items()), sep="\n")
        case ["record", *what]:
            record(what)
        case ["write"]:
            write()
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
