"""Checks that the import contracts do not make: module names in strings, imports inside functions.

The tests read the sources and import none of them. The limits only fall.
"""

import ast
import functools
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(ROOT.glob("packages/*/src/**/*.py"))

# Calls that take the name of a module to import it later.
MAY_NAME_MODULES = {"Column", "attach", "attach_stub", "getLogger", "install_on_demand", "offer", "provide"}
# First-party imports inside functions, in all packages.
LATE_IMPORTS = 45


@functools.cache
def tree(path):
    return ast.parse(path.read_text())


def shown(path):
    return str(path.relative_to(ROOT))


def owner(path):
    """The folder of the package that a file belongs to."""
    return path.relative_to(ROOT / "packages").parts[0]


@functools.cache
def below(folder):
    """The packages that a package may name: itself and its requirements, by their import names."""
    project = tomllib.loads((ROOT / "packages" / folder / "pyproject.toml").read_text())["project"]
    extras = project.get("optional-dependencies", {}).values()
    declared = [r for group in (project["dependencies"], *extras) for r in group]
    return {project["name"], *(r.split(">")[0].split("=")[0] for r in declared)}


def documentation(path):
    """The constants that are docstrings or parts of annotations; no import uses them."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def named_modules(path):
    """(module, line, name of the call it is an argument of, or "") for every string that names a module."""

    def walk(node, call):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Constant) and isinstance(child.value, str):
                if re.match(r"bedrax\.\w", child.value) and child not in documents:
                    yield child.value, child.lineno, call
            inner = call
            if isinstance(child, ast.Call):
                inner = getattr(child.func, "attr", getattr(child.func, "id", ""))
            yield from walk(child, inner)

    documents = set(documentation(path))
    return list(walk(tree(path), ""))


def late_imports(path):
    """The lines of first-party imports inside functions."""

    def walk(node, inside):
        for child in ast.iter_child_nodes(node):
            if inside and isinstance(child, ast.Import | ast.ImportFrom):
                names = [a.name for a in child.names] if isinstance(child, ast.Import) else [child.module or ""]
                if any(name.split(".")[0] in ("bedrax", "jax") for name in names):
                    yield child.lineno
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from walk(child, inside or function)

    return list(walk(tree(path), False))


@pytest.mark.parametrize("folder", sorted({owner(path) for path in SOURCES}))
def test_strings_name_only_modules_below(folder):
    upward = []
    for path in SOURCES:
        if owner(path) == folder:
            for name, line, _ in named_modules(path):
                layer = "bedrax-" + name.split(".")[1].replace("_", "-")
                if layer not in below(folder):
                    upward.append(f"{shown(path)}:{line} names {name}")
    assert not upward, "strings that name a module of another height:\n" + "\n".join(upward)


def test_strings_name_modules_only_where_they_are_imported_later():
    found = [
        f"{shown(path)}:{line} names {name}"
        for path in SOURCES
        if owner(path) not in ("jax", "testing")
        for name, line, call in named_modules(path)
        if call not in MAY_NAME_MODULES
    ]
    assert not found, f"name modules in calls of {sorted(MAY_NAME_MODULES)} only:\n" + "\n".join(found)


def test_first_party_imports_inside_functions_become_fewer():
    lines = [f"{shown(path)}:{line}" for path in SOURCES for line in late_imports(path)]
    assert len(lines) <= LATE_IMPORTS, (
        f"{len(lines)} imports inside functions, {LATE_IMPORTS} may be; import at the top unless that would load"
        " an expensive module that few callers need:\n" + "\n".join(lines)
    )


def test_signatures_are_asked_for_in_one_place():
    """`inspect.signature` evaluates annotations from Python 3.14 on, and fails where their names are not there."""
    asking = [
        str(f.relative_to(ROOT)) for f in SOURCES if re.search(r"inspect\.signature|getfullargspec", f.read_text())
    ]
    assert asking == ["packages/core/src/bedrax/core/signatures.py"]
