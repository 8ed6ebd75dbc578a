"""Make a static package index of wheels and source archives, which any web server can serve.

    python tools/index.py DIST INDEX     # the archives of the folder DIST; INDEX is replaced

    INDEX/simple/index.html              the projects (PEP 503)
    INDEX/simple/NAME/index.html         the files of a project, with hashes and required Pythons
    INDEX/simple/NAME/index.json         the same as JSON (PEP 691), for servers that answer by the header `Accept`
    INDEX/files/FILE                     an archive
    INDEX/files/FILE.metadata            the metadata of a wheel (PEP 658): a resolver need not load the wheel

All links are relative, so the folder may have any address. Projects with the classifier `Private :: Do Not Upload` are
left out.
"""

from __future__ import annotations

import email.parser
import hashlib
import html
import json
import shutil
import sys
import tarfile
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

PRIVATE = "Private :: Do Not Upload"
_MARKS = ("data-core-metadata", "data-dist-info-metadata")  # the newer and the older name of one attribute


class Archive(NamedTuple):
    """A wheel or a source archive."""

    path: Path
    name: str
    version: str
    metadata: bytes

    @property
    def is_wheel(self) -> bool:
        return self.path.suffix == ".whl"

    def header(self, name: str) -> list[str]:
        return email.parser.BytesHeaderParser().parsebytes(self.metadata).get_all(name) or []


def read(path: Path) -> Archive:
    """Read the name, the version and the metadata of an archive."""
    if path.suffix == ".whl":
        name, version, *_ = parse_wheel_filename(path.name)
        with zipfile.ZipFile(path) as archive:
            (inside,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA") and n.count("/") == 1]
            metadata = archive.read(inside)
    else:
        name, version = parse_sdist_filename(path.name)
        with tarfile.open(path) as archive:
            file = archive.extractfile(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO")
            metadata = file.read() if file else b""
    return Archive(path, canonicalize_name(name), str(version), metadata)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def entry(archive: Archive) -> dict[str, Any]:
    """The entry of an archive in the JSON of its project."""
    data = archive.path.read_bytes()
    found: dict[str, Any] = {
        "filename": archive.path.name,
        "url": f"../../files/{quote(archive.path.name)}",
        "hashes": {"sha256": sha256(data)},
        "size": len(data),
    }
    if required := archive.header("Requires-Python"):
        found["requires-python"] = required[0]
    if archive.is_wheel:
        found["core-metadata"] = {"sha256": sha256(archive.metadata)}
    return found


def link(file: dict[str, Any]) -> str:
    """The entry of a file in the HTML of its project."""
    attributes = {"href": f"{file['url']}#sha256={file['hashes']['sha256']}"}
    if "requires-python" in file:
        attributes["data-requires-python"] = file["requires-python"]
    if "core-metadata" in file:
        attributes |= dict.fromkeys(_MARKS, f"sha256={file['core-metadata']['sha256']}")
    text = " ".join(f'{name}="{html.escape(value)}"' for name, value in attributes.items())
    return f"<a {text}>{html.escape(file['filename'])}</a><br>"


def page(title: str, lines: list[str]) -> str:
    head = (
        f'<meta charset="utf-8"><meta name="pypi:repository-version" content="1.1"><title>{html.escape(title)}</title>'
    )
    return "\n".join([f"<!DOCTYPE html><html><head>{head}</head><body>", *lines, "</body></html>", ""])


def make(dist: Path, index: Path) -> list[str]:
    """Make the index. Returns the names of its projects."""
    archives = [read(path) for path in sorted(dist.iterdir()) if path.name.endswith((".whl", ".tar.gz"))]
    projects: dict[str, list[Archive]] = defaultdict(list)
    for archive in archives:
        if PRIVATE not in archive.header("Classifier"):
            projects[archive.name].append(archive)
    shutil.rmtree(index, ignore_errors=True)
    (index / "files").mkdir(parents=True)
    meta = {"api-version": "1.1"}
    for name, some in projects.items():
        files = [entry(archive) for archive in some]
        versions = sorted({archive.version for archive in some})
        folder = index / "simple" / name
        folder.mkdir(parents=True)
        text = page(f"Links for {name}", [link(file) for file in files])
        folder.joinpath("index.html").write_text(text, encoding="utf-8")
        data = {"meta": meta, "name": name, "versions": versions, "files": files}
        folder.joinpath("index.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
        for archive in some:
            shutil.copyfile(archive.path, index / "files" / archive.path.name)
            if archive.is_wheel:
                (index / "files" / f"{archive.path.name}.metadata").write_bytes(archive.metadata)
    names = sorted(projects)
    links = [f'<a href="{name}/">{name}</a><br>' for name in names]
    (index / "simple/index.html").write_text(page("Projects", links), encoding="utf-8")
    data = {"meta": meta, "projects": [{"name": name} for name in names]}
    (index / "simple/index.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    return names


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    print(f"{len(make(Path(sys.argv[1]), Path(sys.argv[2])))} projects in {sys.argv[2]}")
