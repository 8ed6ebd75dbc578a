"""Checks that the import contracts do not make: names of modules in strings.

The tests read the sources and import none of them.
"""

import ast
import functools
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(ROOT.glob("packages/*/src/**/*.py"))

# Calls that take the name of a module to import it later, or to look whether it is imported.
MAY_NAME_MODULES = {"Column", "attach", "attach_stub", "getLogger", "loaded", "name_all", "offer", "provide"}
# Groups of entry points, whose names look like those of modules.
GROUPS = {
    group
    for path in ROOT.glob("packages/*/pyproject.toml")
    for group in tomllib.loads(path.read_text(encoding="utf-8"))["project"].get("entry-points", {})
}


@functools.cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def shown(path):
    return str(path.relative_to(ROOT))


def owner(path):
    """The folder of the package that a file belongs to."""
    return path.relative_to(ROOT / "packages").parts[0]


@functools.cache
def below(folder):
    """The packages that a package may name: itself and its requirements, by their import names."""
    project = tomllib.loads((ROOT / "packages" / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project.get("optional-dependencies", {}).values()
    declared = [r for group in (project["dependencies"], *extras) for r in group]
    return {project["name"], *(re.match(r"[\w.-]+", r)[0] for r in declared)}


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
                is_module = re.match(r"bedrax\.\w", child.value) and child.value not in GROUPS
                if is_module and child not in documents:
                    yield child.value, child.lineno, call
            inner = call
            if isinstance(child, ast.Call):
                inner = getattr(child.func, "attr", getattr(child.func, "id", ""))
            yield from walk(child, inner)

    documents = set(documentation(path))
    return list(walk(tree(path), ""))


@pytest.mark.parametrize("folder", sorted({owner(path) for path in SOURCES}))
def test_strings_name_only_modules_below(folder):
    upward = []
    for path in SOURCES:
        if owner(path) == folder:
            for name, line, _ in named_modules(path):
                layer = "bedrax-" + re.split("[.:]", name)[1].replace("_", "-")
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


# Packages that are installed without the interface `jax`: users of one of them have no name `jax`.
ALONE = [
    *("pytree", "core", "lax", "numpy_backend", "batching", "shape_poly", "autodiff", "parallel", "checkify", "numpy"),
    *("state", "pallas", "random", "nn", "image", "sparse", "scipy", "libraries"),
]


@pytest.mark.parametrize("folder", ALONE)
def test_errors_name_functions_by_the_packages_that_are_installed(folder):
    """The text of an error with a name of `jax` passes through `public`, or `coded`, which replaces it if `jax` is absent."""

    def texts(node):
        for child in ast.iter_child_nodes(node):
            called = getattr(child, "func", None)
            if getattr(called, "attr", getattr(called, "id", "")) in ("coded", "public", "error"):
                continue
            if isinstance(child, ast.Constant) and isinstance(child.value, str):
                yield child
            yield from texts(child)

    found = [
        f"{shown(path)}:{text.lineno}: {text.value!r}"
        for path in SOURCES
        if owner(path) == folder
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Raise) and node.exc is not None
        for text in texts(node)
        if re.search(r"(?<![\w.])jax\.[a-zA-Z]\w* ?\W?", text.value)
    ]
    assert not found, "\n".join(found)
