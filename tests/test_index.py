"""The folder that `tools/index.py` makes of archives."""

import email.message
import hashlib
import io
import json
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import index


def metadata(name, version, *classifiers):
    message = email.message.Message()
    message["Metadata-Version"], message["Name"], message["Version"] = "2.4", name, version
    message["Requires-Python"] = ">=3.11"
    for each in classifiers:
        message["Classifier"] = each
    return message.as_bytes()


def write(folder, name, version, *classifiers):
    """A wheel and a source archive."""
    data = metadata(name, version, *classifiers)
    file = f"{name.replace('-', '_')}-{version}"
    with zipfile.ZipFile(folder / f"{file}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{file}.dist-info/METADATA", data)
    with tarfile.open(folder / f"{file}.tar.gz", "w:gz") as archive:
        info = tarfile.TarInfo(f"{file}/PKG-INFO")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return data


@pytest.fixture
def made(tmp_path):
    dist = tmp_path / "dist"
    dist.mkdir()
    data = write(dist, "jax", "0.12+bedrax.1")
    write(dist, "bedrax-testing", "1.0", index.PRIVATE)
    dist.joinpath(".gitignore").write_text("*", encoding="utf-8")
    assert index.make(dist, tmp_path / "index") == ["jax"]
    return tmp_path / "index", data


def test_html_names_files_with_their_hashes(made):
    folder, data = made
    text = folder.joinpath("simple/jax/index.html").read_text(encoding="utf-8")
    links = re.findall(r'href="([^#"]*)#sha256=(\w+)"', text)
    assert [url for url, _ in links] == [
        "../../files/jax-0.12%2Bbedrax.1-py3-none-any.whl",
        "../../files/jax-0.12%2Bbedrax.1.tar.gz",
    ]
    for url, digest in links:
        file = folder / "files" / url.rpartition("/")[2].replace("%2B", "+")
        assert hashlib.sha256(file.read_bytes()).hexdigest() == digest
    assert f'data-core-metadata="sha256={hashlib.sha256(data).hexdigest()}"' in text
    assert text.count('data-requires-python="&gt;=3.11"') == 2
    assert folder.joinpath("files/jax-0.12+bedrax.1-py3-none-any.whl.metadata").read_bytes() == data


def test_json_has_the_same_files(made):
    folder, data = made
    found = json.loads(folder.joinpath("simple/jax/index.json").read_text(encoding="utf-8"))
    assert (found["name"], found["versions"]) == ("jax", ["0.12+bedrax.1"])
    wheel, source = found["files"]
    assert wheel["core-metadata"] == {"sha256": hashlib.sha256(data).hexdigest()} and "core-metadata" not in source
    assert {file["requires-python"] for file in found["files"]} == {">=3.11"}
    listed = json.loads(folder.joinpath("simple/index.json").read_text(encoding="utf-8"))
    assert listed["projects"] == [{"name": "jax"}]


def test_private_projects_are_left_out(made):
    folder, _ = made
    assert not [path for path in folder.rglob("*") if "testing" in path.name]
    assert "testing" not in folder.joinpath("simple/index.html").read_text(encoding="utf-8")
