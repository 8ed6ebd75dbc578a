"""The table of the parts that this project takes from jaxlib is correct and complete; only the door imports them."""

import ast
import importlib.util
import json
import pathlib
import subprocess
import sys
import warnings

import pytest

pytest.importorskip("jaxlib")

from bedrax.xla_backend.door import versions

ROOT = pathlib.Path(__file__).parent.parent
_spec = importlib.util.spec_from_file_location("door", ROOT / "tools" / "door.py")
door = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(door)

TABLE = json.loads(door.TABLE.read_text(encoding="utf-8"))
TAKEN = door.gather()
AGAIN = "run `nox -s door`, which writes the table"


def still_taken(row):
    """Whether the sources use the name of a row. The row of an unused attribute may stay until the next write."""
    kind, name = row.split(" ", 1)
    if kind == "attribute":
        return name.rpartition(".")[2] in TAKEN["attributes"]
    if kind == "keyword":
        return name in TAKEN["exact"] or name.removesuffix("=)").rpartition(".")[2] + ")" in TAKEN["keywords"]
    return kind != "name" or name in TAKEN["names"]


def test_the_table_is_true_of_the_installed_jaxlib_and_complete():
    version, rows = door.probed(sys.executable, TAKEN)
    assert version == versions.jaxlib_version
    if version in door.VERSIONS:
        known = {name for name, row in TABLE.items() if row[door.VERSIONS.index(version)] is True}
        gone = {row for row in known - set(rows) if still_taken(row)}
        assert set(rows) <= known and not gone, (f"new: {sorted(set(rows) - known)}; gone: {sorted(gone)}", AGAIN)
    else:  # an untested version must have everything that the newest tested one has
        assert {name for name, row in TABLE.items() if row[-1] is True} <= set(rows)


def test_names_that_some_jaxlib_lacks_have_a_capability():
    assert door.absent(TABLE, set(TAKEN["exact"])) == [], "write a row of versions.CAPABILITIES, and use it"
    assert {answer for row in TABLE.values() for answer in row} - {True, False} <= set(versions.CAPABILITIES)


def test_capabilities_agree_with_the_table():
    """For the installed jaxlib, and only for parts that some version lacks."""
    for name, capability in versions.CAPABILITIES.items():
        for row in capability.replaces:
            assert name in TABLE[row], (name, row)
            if versions.jaxlib_version in door.VERSIONS:
                assert versions.has(name) == (TABLE[row][door.VERSIONS.index(versions.jaxlib_version)] is True), name
        assert (versions.missing(name) is None) == versions.has(name)


def test_names_that_are_reached_from_a_module_are_in_the_table():
    wanted = [f"name {n}" for n in TAKEN["names"]] + [f"keyword {k}" for k in TAKEN["exact"]]
    wanted += [f"module {m}" for m in TAKEN["modules"]] + [f"pass {p}" for p in TAKEN["passes"]]
    assert [n for n in wanted if n not in TABLE and not n.startswith("module jaxlib._")] == []


def test_a_use_that_no_table_has_is_found(tmp_path, monkeypatch):
    file = tmp_path / "more.py"
    file.write_text(
        "from jaxlib import _jax\n"
        "here = _jax.Client\n"
        "def f(x):\n"
        "    return _jax.make_cpu_client(nonsense=1), here.no_such_method, x.load_pjrt_executable\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(door, "DOOR", tmp_path)
    found = {kind: set() for kind in (*TAKEN,)}
    tree = ast.parse(file.read_text(encoding="utf-8"))
    door._Roots(found).visit(tree)
    door._uses(tree, found)
    assert found["names"] >= {"jaxlib._jax.Client", "jaxlib._jax.Client.no_such_method"}
    assert found["exact"] == {"jaxlib._jax.make_cpu_client(nonsense=)"}
    assert "load_pjrt_executable" in found["attributes"]
    _, rows = door.probed(sys.executable, {kind: sorted(some) for kind, some in found.items()})
    assert "name jaxlib._jax.Client" in rows
    assert "name jaxlib._jax.Client.no_such_method" not in rows
    assert not any("nonsense" in row for row in rows)


# ---- jaxlib is used only behind the door ----

INSIDE = {*door.DOOR.glob("*.py"), *door.ENGINE}
OUTSIDE = [f for f in sorted((ROOT / "packages").glob("*/src/**/*.py")) if f not in INSIDE]


def outside_of_the_door(tree):
    """Lines of a module that import jaxlib, compare its version, or test its objects for an attribute."""
    of_the_door, found = set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and ".door" in (node.module or ""):
            of_the_door.update(n.asname or n.name for n in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(n.name.partition(".")[0] == "jaxlib" for n in node.names):
            found.append((node.lineno, "imports jaxlib"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "jaxlib":
            found.append((node.lineno, "imports jaxlib"))
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", getattr(node.func, "attr", ""))
            in ("load_whole", "import_module", "__import__")
            and any("jaxlib" in str(getattr(a, "value", "")) for a in node.args)
        ):
            found.append((node.lineno, "imports jaxlib"))
        elif (
            isinstance(node, ast.Compare)
            and "jaxlib_version" in ast.dump(node)
            and (
                # a test for equal versions is allowed anywhere
                not isinstance(node.ops[0], ast.Eq | ast.NotEq)
                or any(isinstance(c, ast.Constant) for c in node.comparators)
            )
        ):
            found.append((node.lineno, "compares the version of jaxlib"))
        elif (
            isinstance(node, ast.Call)
            and "parts" == getattr(node.func, "attr", "")
            and "versions" in ast.dump(node.func)
        ):
            found.append((node.lineno, "compares versions"))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("hasattr", "getattr"):
            root = node.args[0]
            while isinstance(root, ast.Attribute):
                root = root.value
            if getattr(root, "id", "") in of_the_door and (node.func.id == "hasattr" or len(node.args) == 3):
                found.append((node.lineno, "tests for an attribute that may be missing"))
    return found


@pytest.mark.parametrize("file", OUTSIDE, ids=lambda f: str(f.relative_to(ROOT / "packages")))
def test_only_the_door_uses_jaxlib(file):
    text = file.read_text(encoding="utf-8")
    if "jaxlib" in text or ".door" in text:
        assert outside_of_the_door(ast.parse(text)) == [], f"{file}: this belongs into {door.DOOR}"


@pytest.mark.parametrize(
    "line",
    [
        "import jaxlib._jax",
        "from jaxlib import xla_client",
        "load_whole('jaxlib._jax')",
        "from bedrax.xla_backend.door import runtime\nruntime.jaxlib_version < '1'",
        "from bedrax.xla_backend.door import runtime\nhasattr(runtime.Client, 'x')",
        "from bedrax.xla_backend.door.runtime import Client\ngetattr(Client, 'x', None)",
        "from bedrax.xla_backend.door import versions\nversions.parts('0.11')",
    ],
)
def test_uses_outside_of_the_door_are_found(line):
    assert len(outside_of_the_door(ast.parse(line))) == 1


# ---- a jaxlib that is newer than the tested ones ----


@pytest.mark.parametrize(
    "version, warned",
    [("0.10.2", 0), ("0.12.0.1", 0), ("0.12.0.1+local", 0), ("0.12.0.2", 1), ("0.12.1", 1), ("0.13.0", 1), ("1.0", 1)],
)
def test_a_newer_jaxlib_is_a_warning(monkeypatch, version, warned):
    monkeypatch.setattr(versions, "jaxlib_version", version)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        versions.warn_if_untried()
    assert len(seen) == warned
    if warned:
        assert seen[0].category is UserWarning
        assert f"jaxlib {version} is newer than {versions.NEWEST}" in str(seen[0].message)


def test_the_warning_comes_once_and_programs_run():
    code = ROOT / "tests" / "programs" / "newer_jaxlib.py"
    done = subprocess.run([sys.executable, code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1", (done.stdout, done.stderr)
