"""The metadata of the packages are complete, and the links in their READMEs work on a page of an index."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import metadata


@pytest.mark.parametrize("path", metadata.PYPROJECTS, ids=lambda path: path.parent.name)
def test_the_shared_metadata_are_those_of_the_table(path):
    assert path.read_text(encoding="utf-8") == metadata.written(path), "run tools/metadata.py write"
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    assert project["urls"] == metadata.urls() and project["authors"] and project["keywords"]
    assert project["description"] and len(project["description"]) < 512


@pytest.mark.parametrize("path", metadata.PYPROJECTS, ids=lambda path: path.parent.name)
def test_links_of_readmes_are_absolute(path):
    text = path.with_name("README.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        assert link.startswith(("https://", "#")), f"{link}: an index shows the page without the files around it"
        if link.startswith(metadata.REPOSITORY):
            inside = link.removeprefix(f"{metadata.REPOSITORY}/blob/main/").partition("#")[0]
            assert (ROOT / inside).exists(), f"{link} names a file that is not there"


def test_packages_in_the_table_exist():
    assert metadata.TABLE["more"].keys() <= {path.parent.name for path in metadata.PYPROJECTS}
