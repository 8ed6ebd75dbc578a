"""The release train: all packages have one version and one changelog.

    python tools/release.py prepare VERSION   # write the version into all metadata, bounds, changelogs and pages
    python tools/release.py changelog         # write CHANGELOG.md from the packages' changelogs
    python tools/release.py check             # versions, bounds, changelogs; fails if the tree cannot be released
    python tools/release.py archives DIST     # licences, metadata and contents of the built archives

`nox -s release` runs them, and builds, installs and tests the archives.
"""

from __future__ import annotations

import email.parser
import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYPROJECTS = sorted(ROOT.glob("packages/*/pyproject.toml"))
# Files whose text has the version of `jax`, which contains the common version.
WITH_VERSION = [
    ROOT / "README.md",
    ROOT / "CITATION.cff",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("packages/*/README.md")),
]
CHANGELOG = ROOT / "CHANGELOG.md"
HEAD = """# Changelog

All packages are released together, with one version. `python tools/release.py changelog` writes this file from the
changelogs of the packages, from the interface down to the lowest layer.
"""
UNRELEASED = "Unreleased"


def projects() -> dict[str, dict]:
    """The tables [project] by the folders of the packages."""
    return {path.parent.name: tomllib.loads(path.read_text(encoding="utf-8"))["project"] for path in PYPROJECTS}


def common(version: str) -> str:
    """The common part of a version: what follows `+bedrax.` in that of `jax`."""
    return version.partition("+bedrax.")[2] or version


def version() -> str:
    """The version of the train, that of the distribution `bedrax`."""
    return projects()["bedrax"]["version"]


def order() -> list[str]:
    """The folders of the packages, as README's table has them from the top down; then the others."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[`[\w-]+`\]\(packages/(\w+)\)", text, re.MULTILINE)
    return ["bedrax", *listed, *sorted(projects().keys() - {*listed, "bedrax"})]


def sections(folder: str) -> dict[str, str]:
    """The sections of a package's changelog: common version (or `Unreleased`) -> text."""
    text = (ROOT / "packages" / folder / "CHANGELOG.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    found: dict[str, str] = {}
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        found[common(title.strip())] = re.sub(r"\n{2,}", "\n", body.strip())
    return found


def _newest_first(titles: set[str]) -> list[str]:
    number = lambda title: [int(part) for part in title.split(".")] if title != UNRELEASED else [10**9]
    return sorted(titles, key=number, reverse=True)


def changelog() -> str:
    """The text of the common changelog."""
    found = {folder: sections(folder) for folder in order()}
    names = {folder: project["name"] for folder, project in projects().items()}
    lines = [HEAD]
    for title in _newest_first({title for some in found.values() for title in some}):
        lines.append(f"## {title}\n")
        for folder, some in found.items():
            if some.get(title):
                lines.append(f"### {names[folder]}\n\n{some[title]}\n")
    return "\n".join(lines)


def faults() -> Iterator[str]:
    """The reasons why the tree cannot be released."""
    tables, train = projects(), version()
    minor = re.match(r"\d+\.\d+", train)
    if minor is None:
        yield f"the version of bedrax is of the form 0.1.0, got {train}"
        return
    major, number = map(int, minor[0].split("."))
    bound = f">={major}.{number},<{major}.{number + 1}"
    face = tables["jax"]["version"]
    for folder, project in tables.items():
        if common(project["version"]) != train:
            yield f"{project['name']} has version {project['version']}, the train has {train}"
        found = sections(folder)
        if UNRELEASED in found:
            yield f"the changelog of {project['name']} has unreleased changes: run `tools/release.py prepare VERSION`"
        elif train not in found:
            yield f"the changelog of {project['name']} has no section for {train}"
        extras = project.get("optional-dependencies", {}).values()
        for requirement in (r for some in (project["dependencies"], *extras) for r in some):
            name, _, given = re.match(r"([\w.-]+)(\[[\w,-]+\])?(.*)", requirement).groups()  # type: ignore[union-attr]
            expected = f"=={face}" if name == "jax" else bound
            if name in {p["name"] for p in tables.values()} and given != expected:
                yield f"{project['name']} requires {requirement}; the bound of the train is {expected}"
    if not CHANGELOG.exists() or CHANGELOG.read_text(encoding="utf-8") != changelog():
        yield "CHANGELOG.md is not that of the packages: run `tools/release.py changelog`"


def prepare(new: str) -> None:
    """Write a version into metadata, bounds, changelogs and pages."""
    if re.fullmatch(r"\d+\.\d+\.\d+", new) is None:
        raise SystemExit(f"a version is of the form 0.2.0, got {new}")
    old, face = version(), projects()["jax"]["version"]
    bound = lambda text: "{0}.{1},<{0}.{2}".format(*(p := [int(n) for n in text.split(".")])[:2], p[1] + 1)
    newer_face = face.replace(f"+bedrax.{old}", f"+bedrax.{new}")
    for path in PYPROJECTS:
        text = path.read_text(encoding="utf-8").replace(face, newer_face)
        text = text.replace(f'\nversion = "{old}"\n', f'\nversion = "{new}"\n')
        text = re.sub(rf'("bedrax-[\w-]+(?:\[[\w,-]+\])?>=){re.escape(bound(old))}"', rf'\g<1>{bound(new)}"', text)
        path.write_text(text, encoding="utf-8")
        changes = path.with_name("CHANGELOG.md")
        title = newer_face if path.parent.name == "jax" else new
        text = changes.read_text(encoding="utf-8")
        if f"## {UNRELEASED}" in text:
            text = text.replace(f"## {UNRELEASED}", f"## {title}", 1)
        elif f"## {title}" not in text:
            text = text.replace("\n## ", f"\n## {title}\n\n- No changes.\n\n## ", 1)
        changes.write_text(text, encoding="utf-8")
    for path in WITH_VERSION:
        text = (
            path.read_text(encoding="utf-8")
            .replace(face, newer_face)
            .replace(f"\nversion: {old}\n", f"\nversion: {new}\n")
        )
        path.write_text(text, encoding="utf-8")
    CHANGELOG.write_text(changelog(), encoding="utf-8")


def faults_of_archives(dist: Path) -> Iterator[str]:
    """Wheels and source archives without a licence, of another version, or with files that do not belong there."""
    tables = projects()
    for project in tables.values():
        name, number = project["name"].replace("-", "_"), project["version"]
        wheel, source = dist / f"{name}-{number}-py3-none-any.whl", dist / f"{name}-{number}.tar.gz"
        for path in (wheel, source):
            if not path.exists():
                yield f"{path.name} was not built"
        if not (wheel.exists() and source.exists()):
            continue
        with zipfile.ZipFile(wheel) as archive:
            files = set(archive.namelist())
            info = f"{name}-{number}.dist-info"
            fields = email.parser.BytesHeaderParser().parsebytes(archive.read(f"{info}/METADATA"))
            licence = archive.read(f"{info}/licenses/LICENSE") if f"{info}/licenses/LICENSE" in files else b""
        if licence != (ROOT / "LICENSE").read_bytes():
            yield f"{wheel.name} has no licence file, or another one"
        if fields["License-Expression"] != "Apache-2.0" or fields["License-File"] != "LICENSE":
            yield f"{wheel.name} does not name its licence"
        allowed = ("jax/",) if project["name"] == "jax" else ("bedrax/",)
        strange = sorted(f for f in files if not f.startswith((*allowed, info)) or "/tests/" in f or "__pycache__" in f)
        if strange or "bedrax/__init__.py" in files:
            yield f"{wheel.name} has files that do not belong there: {strange or 'bedrax/__init__.py'}"
        with tarfile.open(source) as archive:
            inside = {member.name.partition("/")[2] for member in archive.getmembers()}
        missing = {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "PKG-INFO"} - inside
        if missing or not any(file.startswith("tests/") for file in inside):
            yield f"{source.name} lacks {sorted(missing) or 'its tests'}"


def main(arguments: list[str]) -> int:
    match arguments:
        case ["prepare", new]:
            prepare(new)
            return 0
        case ["changelog"]:
            CHANGELOG.write_text(changelog(), encoding="utf-8")
            return 0
        case ["check"]:
            found = [*faults()]
        case ["archives", dist]:
            found = [*faults_of_archives(Path(dist))]
        case _:
            raise SystemExit(__doc__)
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
