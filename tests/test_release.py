"""The release train: a version is written everywhere, and the check names what is not ready."""

import re
import shutil
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import pythons
import release

NAMES = ("pyproject.toml", "README.md", "CHANGELOG.md")


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A copy of the files that a release changes."""
    files = [path.with_name(name) for path in release.PYPROJECTS for name in NAMES]
    for file in [*files, *release.WITH_VERSION]:
        copy = tmp_path / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    for name in ("PYPROJECTS", "WITH_VERSION"):
        monkeypatch.setattr(release, name, [tmp_path / file.relative_to(ROOT) for file in getattr(release, name)])
    monkeypatch.setattr(release, "CHANGELOG", tmp_path / "CHANGELOG.md")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    return tmp_path


def edit(file, old, new):
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_a_prepared_tree_can_be_released(tree):
    release.prepare("7.3.0")
    assert [*release.faults()] == []
    assert release.version() == "7.3.0"
    face = tomllib.loads((tree / "packages/jax/pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert face["version"].endswith("+bedrax.7.3.0") and "bedrax-core>=7.3,<7.4" in face["dependencies"]
    assert face["version"] in (tree / "README.md").read_text(encoding="utf-8")
    assert "\nversion: 7.3.0\n" in (tree / "CITATION.cff").read_text(encoding="utf-8")
    assert release.UNRELEASED not in (tree / "CHANGELOG.md").read_text(encoding="utf-8")
    left = [file for file in tree.rglob("*") if file.suffix in (".toml", ".md") and file.name != "CHANGELOG.md"]
    assert not [file for file in left if "+bedrax.0.1.0" in file.read_text(encoding="utf-8")]


FAULTS = [
    (
        "core/pyproject.toml",
        'version = "7.3.0"',
        'version = "7.2.0"',
        "bedrax-core has version 7.2.0, the train has 7.3",
    ),
    (
        "lax/pyproject.toml",
        "bedrax-core>=7.3,<7.4",
        "bedrax-core>=7.3",
        "bedrax-lax requires bedrax-core>=7.3; the bound",
    ),
    ("bedrax/pyproject.toml", "jax[tf]==", "jax[tf]>=", "bedrax requires jax[tf]>="),
    ("core/CHANGELOG.md", "## 7.3.0", "## Unreleased", "the changelog of bedrax-core has unreleased changes"),
    ("core/CHANGELOG.md", "## 7.3.0", "## 7.1.0", "the changelog of bedrax-core has no section for 7.3.0"),
    ("core/CHANGELOG.md", "\n- ", "\n- Another. ", "CHANGELOG.md is not that of the packages"),
]


@pytest.mark.parametrize(("file", "old", "new", "expected"), FAULTS)
def test_a_tree_that_is_not_ready(tree, file, old, new, expected):
    release.prepare("7.3.0")
    edit(tree / "packages" / file, old, new)
    assert any(fault.startswith(expected) for fault in release.faults()), [*release.faults()]


def test_the_changelog_lists_packages_from_the_interface_down(tree):
    text = release.changelog()
    newest = text[text.index("## ") :].partition("\n## ")[0]
    names = re.findall(r"^### (.*)$", newest, re.MULTILINE)
    tables = release.projects()
    assert names == [tables[n]["name"] for n in release.order() if tables[n]["name"] in names] and names
    assert len(release.order()) == len(tables)


def test_a_version_has_three_numbers(tree):
    with pytest.raises(SystemExit, match="a version is of the form 0.2.0, got 1.0rc1"):
        release.prepare("1.0rc1")


def test_archives_without_licence_and_tests_are_named(tmp_path):
    name, number = "bedrax_pytree", release.projects()["pytree"]["version"]
    with zipfile.ZipFile(tmp_path / f"{name}-{number}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}-{number}.dist-info/METADATA", "Name: bedrax-pytree\n")
        archive.writestr("tests/test_tree.py", "")
    with tarfile.open(tmp_path / f"{name}-{number}.tar.gz", "w:gz"):
        pass
    found = [fault for fault in release.faults_of_archives(tmp_path) if fault.startswith(name)]
    assert [fault.removeprefix(f"{name}-{number}") for fault in found] == [
        "-py3-none-any.whl has no licence file, or another one",
        "-py3-none-any.whl does not name its licence",
        "-py3-none-any.whl has files that do not belong there: ['tests/test_tree.py']",
        ".tar.gz lacks ['CHANGELOG.md', 'LICENSE', 'PKG-INFO', 'README.md', 'pyproject.toml']",
    ]
    assert f"bedrax-{number}-py3-none-any.whl was not built" in release.faults_of_archives(tmp_path)


def bounds(name):
    """The bounds of a library in the metadata of the packages."""
    found = set()
    for project in release.projects().values():
        extras = project.get("optional-dependencies", {}).values()
        for requirement in (r for some in (project["dependencies"], *extras) for r in some):
            if match := re.match(rf"{name}(>=[\d.,<=]+)", requirement):
                found.add(match[1])
    return found


def test_the_page_of_support_has_the_bounds_of_the_metadata():
    page = (ROOT / "docs/support.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([\w-]+) \| ([\d.]+ \| [\w. ]+) \|", page, re.MULTILINE))
    (oldest, *_, newest) = pythons.table()
    assert rows["Python"] == f"{oldest} | {newest}"
    assert {rows["jaxlib"]} == {"{} | {}".format(*re.findall(r"[\d.]+", each)) for each in bounds("jaxlib")}
    for name in ("NumPy", "SciPy", "ml-dtypes", "TensorFlow"):
        number = rows[name].partition(" |")[0]
        assert bounds(name.lower()) == {f">={number}".removesuffix(".0")}, name
