"""Write the metadata that the packages share into each pyproject.toml, from `tools/metadata.toml`.

python tools/metadata.py write      # write them
python tools/metadata.py --check    # fail if one differs
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
REPOSITORY: str = TABLE["repository"]
PYPROJECTS = sorted(ROOT.glob("packages/*/pyproject.toml"))


def urls() -> dict[str, str]:
    """The addresses in the metadata."""
    return {name: f"{REPOSITORY}/{path}".rstrip("/") for name, path in TABLE["urls"].items()}


def own_classifiers(project: dict) -> list[str]:
    """The classifiers of a project that no table has: those of Pythons, and of this project alone."""
    return [each for each in project["classifiers"] if each not in TABLE["classifiers"]]


def written(path: Path) -> str:
    """The text of a pyproject.toml with the shared metadata."""
    text = path.read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    text = re.sub(r"^(authors|keywords) = .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\[project\.urls\]\n(?:.+\n)+\n", "", text, flags=re.MULTILINE)
    authors = ", ".join(f"{{ name = {json.dumps(each['name'])} }}" for each in TABLE["authors"])
    keywords = sorted({*TABLE["keywords"], *TABLE["more"].get(path.parent.name, ())})
    shared = f"authors = [{authors}]\nkeywords = {json.dumps(keywords)}\n"
    text = re.sub(r"^(?=classifiers = )", lambda _: shared, text, flags=re.MULTILINE)
    lines = "".join(f'    "{each}",\n' for each in [*own_classifiers(project), *TABLE["classifiers"]])
    text = re.sub(
        r"^classifiers = \[.*?^\]$", lambda _: f"classifiers = [\n{lines}]", text, flags=re.MULTILINE | re.DOTALL
    )
    table = "[project.urls]\n" + "".join(f'{name} = "{url}"\n' for name, url in urls().items())
    return re.sub(r"^(?=\[dependency-groups\])", lambda _: f"{table}\n", text, flags=re.MULTILINE)


def main(arguments: list[str]) -> int:
    if arguments not in (["write"], ["--check"]):
        raise SystemExit(__doc__)
    stale = [path for path in PYPROJECTS if written(path) != path.read_text(encoding="utf-8")]
    for path in stale:
        if arguments == ["write"]:
            path.write_text(written(path), encoding="utf-8")
        print(f"{path.relative_to(ROOT)} {'was written' if arguments == ['write'] else 'is stale'}")
    return int(bool(stale) and arguments == ["--check"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
