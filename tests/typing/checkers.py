"""What type checkers say of this folder and of the packages. Run by `nox -s types`.

python tests/typing/checkers.py uses          # right.py is accepted, each marked line of wrong.py is refused
python tests/typing/checkers.py complete      # verifytypes of each package is not below its floor
python tests/typing/checkers.py complete -w   # write the floors
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FLOORS = HERE / "complete.json"  # per package: the share of public names whose type is known, in percent
MARK = "  # wrong"


def tool(name: str, *arguments: str) -> str:
    """The output of a tool of this environment, run as a process."""
    environment = Path(sys.executable).parent
    search = {"PATH": f"{environment}:/usr/bin:/bin", "HOME": str(ROOT)}  # pyright asks the first Python of PATH
    command = [str(environment / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=search).stdout


def mypy_lines(path: Path) -> dict[int, str]:
    """The lines that mypy refuses, with the first message of each."""
    found = re.findall(r"^\S*?:(\d+): error: (.*)$", tool("mypy", "--strict", str(path)), re.MULTILINE)
    return {int(line): message for line, message in reversed(found)}


def pyright_lines(path: Path) -> dict[int, str]:
    """The lines that pyright refuses, with the first message of each."""
    report = json.loads(tool("basedpyright", "--level", "error", "--outputjson", str(path)))
    errors = [d for d in report["generalDiagnostics"] if d["severity"] == "error"]
    return {d["range"]["start"]["line"] + 1: d["message"] for d in reversed(errors)}


CHECKERS = {"mypy": mypy_lines, "pyright": pyright_lines}


def wrong_lines() -> dict[int, str]:
    """The lines of `wrong.py` that a checker must refuse."""
    lines = (HERE / "wrong.py").read_text().splitlines()
    return {n: line for n, line in enumerate(lines, 1) if line.endswith(MARK)}


def faults_of_uses() -> list[str]:
    """One line for each right use that is refused and for each wrong use that is accepted."""
    wrong, faults = wrong_lines(), []
    for name, lines_of in CHECKERS.items():
        faults += [f"{name} refuses right.py:{n}: {text}" for n, text in sorted(lines_of(HERE / "right.py").items())]
        refused = lines_of(HERE / "wrong.py")
        faults += [f"{name} accepts wrong.py:{n}: {line}" for n, line in wrong.items() if n not in refused]
        faults += [f"{name} refuses wrong.py:{n}, which is right: {refused[n]}" for n in sorted(refused.keys() - wrong)]
    return faults


def packages() -> list[str]:
    """The packages of the workspace, as they are imported."""
    names = sorted(path.name for path in (ROOT / "packages").iterdir() if (path / "pyproject.toml").exists())
    return [name if name == "jax" else f"bedrax.{name}" for name in names]


def completeness(package: str) -> float:
    """The share of the public names of a package whose types are known, in percent."""
    report = json.loads(tool("basedpyright", "--verifytypes", package, "--ignoreexternal", "--outputjson"))
    counts = report["typeCompleteness"]["exportedSymbolCounts"]
    total = sum(counts.values())
    if not total:
        raise RuntimeError(f"pyright found no public names in {package}: {report['generalDiagnostics']}")
    return round(100 * counts["withKnownType"] / total, 1)


def faults_of_completeness(write: bool) -> list[str]:
    """One line for each package that is below its floor; a floor that is passed is raised if `write`."""
    floors, found = json.loads(FLOORS.read_text()) if FLOORS.exists() else {}, {}
    for package in packages():
        found[package] = completeness(package)
        print(f"{package:24} {found[package]:5.1f}", flush=True)
    if write:
        kept = {package: max(share, floors.get(package, 0.0)) for package, share in found.items()}
        FLOORS.write_text(json.dumps(kept, indent=1) + "\n")
        floors = kept
    return [
        f"{package}: the types of {share} % of the public names are known, the floor is {floors.get(package)} %"
        for package, share in found.items()
        if share < floors.get(package, 100.0)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("uses", "complete"))
    parser.add_argument("-w", "--write", action="store_true", help="raise the floors that are passed")
    given = parser.parse_args()
    faults = faults_of_uses() if given.what == "uses" else faults_of_completeness(given.write)
    print(*faults, sep="\n")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
