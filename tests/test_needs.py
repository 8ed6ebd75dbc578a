"""Tests that need a library are skipped if it has no wheels for this Python, and never otherwise (`conftest.py`)."""

import ast
import re
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]


@pytest.fixture
def needs(pytestconfig):
    """The module `conftest` of the root."""
    return pytestconfig.pluginmanager.get_plugin(str(ROOT / "conftest.py"))


def imported(body):
    """The top-level names of the modules that these statements import, also in blocks, but not in functions."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from [node.module.partition(".")[0]] if node.module else []
        elif not isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from imported(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt))


def test_every_file_that_imports_a_library_is_in_the_table(needs):
    files = [
        f for pattern in ("packages/*/tests", "tests", "examples/*/tests") for f in ROOT.glob(f"{pattern}/**/test_*.py")
    ]
    missing = [
        (str(file.relative_to(ROOT)), name)
        for file in files
        for name in {*imported(ast.parse(file.read_text(encoding="utf-8")).body)} & needs.LIBRARIES.keys()
        if name not in needs.libraries_of(file)
    ]
    assert len(files) > 200 and not missing


def test_files_in_the_table_exist(needs):
    named = [file for library in needs.LIBRARIES.values() for file in library.files]
    assert not [file for file in named if not (ROOT / file).exists()]


def test_the_pythons_are_those_of_the_declarations(needs):
    texts = [
        file.read_text(encoding="utf-8") for file in (ROOT / "pyproject.toml", *ROOT.glob("packages/*/pyproject.toml"))
    ]
    for name, library in needs.LIBRARIES.items():
        found = {
            m for text in texts for m in re.findall(rf"\"{name}[\w>=., -]*; python_version < '(\d+)\.(\d+)'", text)
        }
        assert found == {(str(library.newest[0]), str(library.newest[1] + 1))}


PRESENT = {"flax", "bedrax", "bedrax.tf", "numpy"}
TABLE = [  # installed modules, Python, outcome of a test that needs TensorFlow
    ({"tensorflow", *PRESENT}, (3, 13), None),
    ({"tensorflow", *PRESENT}, (3, 14), None),
    (PRESENT, (3, 14), "tensorflow has no wheels for Python 3.14"),
    ({"numpy"}, (3, 15), "tensorflow has no wheels for Python 3.15"),
    (PRESENT, (3, 13), "fails"),
    (PRESENT, (3, 11), "fails"),
    ({"bedrax", "numpy"}, (3, 11), "tensorflow comes with an extra or a group that this environment leaves out"),
    ({"numpy"}, (3, 11), "tensorflow comes with an extra or a group that this environment leaves out"),
]


@pytest.mark.parametrize(("installed", "version", "expected"), TABLE)
def test_an_installable_library_that_is_absent_fails_its_tests(needs, monkeypatch, installed, version, expected):
    monkeypatch.setattr(needs.importlib.util, "find_spec", lambda name: True if name in installed else None)
    monkeypatch.setattr(needs.sys, "version_info", (*version, 0))
    if expected == "fails":
        with pytest.raises(pytest.fail.Exception, match="tensorflow is not installed, but bedrax.tf is"):
            needs.absence("tensorflow")
    else:
        assert needs.absence("tensorflow") == expected


@pytest.mark.parametrize("library", ["tensorflow", "tensorstore"])
def test_files_and_tests_are_skipped_with_the_reason(library, pytester, needs):
    pytester.makepyfile(test_whole=f"import {library}")
    pytester.makeconftest(
        f"""
        import sys
        from importlib.util import module_from_spec, spec_from_file_location
        spec = spec_from_file_location("needs", {str(ROOT / "conftest.py")!r})
        needs = module_from_spec(spec)
        spec.loader.exec_module(needs)
        from pathlib import Path
        needs.ROOT = Path({str(pytester.path)!r})
        find = needs.importlib.util.find_spec
        needs.importlib.util.find_spec = lambda name: None if name == {library!r} else find(name)
        needs.LIBRARIES = {{{library!r}: needs.Library((3, 10), "json", ("test_whole.py",))}}
        for name in "pycollect_makemodule", "configure", "runtest_setup":
            globals()["pytest_" + name] = getattr(needs, "pytest_" + name)
        """
    )
    pytester.path.joinpath("test_part.py").write_text(
        f"import pytest\n@pytest.mark.needs({library!r})\ndef test_one(): import {library}\ndef test_two(): pass\n",
        encoding="utf-8",
    )
    result = pytester.runpytest_subprocess("-ra", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(
        [f"SKIPPED*{library} has no wheels for Python {sys.version_info[0]}.{sys.version_info[1]}"]
    )
