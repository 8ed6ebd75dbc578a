"""The generated stubs: every name is in the module that its stub imports it from, and is public there."""

import ast
import importlib
import importlib.util
import types
import warnings
from pathlib import Path

import jax
import pytest

import bedrax

PARTS = {
    **{f"bedrax.{p.name}": p for folder in bedrax.__path__ for p in Path(folder).iterdir()},
    "jax": Path(jax.__file__).parent,
}
FILES = {
    ".".join((part, *file.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__"): file
    for part, folder in PARTS.items()
    for file in sorted(folder.rglob("*.py"))
}
# Only type checkers read the other stubs.
STUBS = {
    module: file.with_suffix(".pyi") for module, file in FILES.items() if "attach(" in file.read_text(encoding="utf-8")
}
STUBS = {module: stub for module, stub in STUBS.items() if stub.exists()}
WITHOUT_TF = importlib.util.find_spec("tensorflow") is None
NEEDS = {"jax2tf": "tensorflow", "array_serialization": "tensorstore"}  # part of a module's name: its import


def marks(module):
    return [pytest.mark.needs(library) for part, library in NEEDS.items() if part in module]


MODULES = [pytest.param(module, marks=marks(module)) for module in STUBS]


def imported(module):
    """A module, which may be deprecated (see `jax._removed_names`)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return importlib.import_module(module)


def imports(module):
    """The imports of a stub: (home, name there, name here); a star has no name here."""
    file = STUBS[module]
    package = module if file.stem == "__init__" else module.rpartition(".")[0]
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom):
            home = importlib.util.resolve_name("." * statement.level + (statement.module or ""), package)
            yield from ((home, name.name, name.asname) for name in statement.names)


@pytest.mark.parametrize("module", MODULES)
def test_a_stub_imports_exported_names_only(module):
    wrong = []
    for home_name, theirs, ours in imports(module):
        if home_name == module:
            wrong += [theirs] if importlib.util.find_spec(f"{module}.{theirs}") is None else []
        elif theirs != "*":
            home = importlib.import_module(home_name)
            exported = getattr(home, "__all__", None)
            value = getattr(home, theirs, wrong)
            hidden = exported is not None and theirs not in exported and not isinstance(value, types.ModuleType)
            if value is wrong or hidden and not (ours or "_").startswith("_"):
                wrong.append(f"{home_name}.{theirs}")
    assert not wrong, f"not there, or not in the __all__ there: {wrong}"


@pytest.mark.parametrize("module", MODULES)
def test_public_names_of_a_stub_are_those_of_its_module(module):
    # Type checkers take `x as y` for private: a public name is `x as x`, or is assigned.
    renamed = [ours for _, theirs, ours in imports(module) if ours not in (None, theirs) and ours[0] != "_"]
    assert not renamed
    named = [ours or theirs for _, theirs, ours in imports(module) if theirs != "*"]
    assert len(named) == len(set(named)), "a name twice"
    public = {ours for _, theirs, ours in imports(module) if ours == theirs}
    public |= {
        target.id
        for node in ast.parse(STUBS[module].read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
    public |= {name for home, theirs, _ in imports(module) if theirs == "*" for name in imported(home).__all__}
    assert sorted(name for name in public if name[0] != "_") == imported(module).__all__


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_a_stub_is_found(module):
    found = imported(module)
    assert found.__all__ == sorted(found.__all__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # for names in jax._removed_names
        for name in dir(found):
            if not (WITHOUT_TF and name == "jax2tf"):
                getattr(found, name)
    with pytest.raises(AttributeError, match="no_such_name"):
        found.no_such_name


def test_every_module_of_the_face_is_an_attribute_of_its_package():
    for module in FILES:
        package, _, name = module.rpartition(".")
        if package.startswith("jax") and name != "__main__" and not (WITHOUT_TF and "jax2tf" in module):
            assert name in dir(imported(package)), module


def test_no_submodule_hides_a_name():
    # Importing a submodule sets that attribute of its package, so it must be that name, or be imported first.
    hidden = [
        f"{module}.{ours}"
        for module in STUBS
        for home, theirs, ours in imports(module)
        if f"{module}.{ours}" in FILES and (home, theirs) not in ((module, ours), (f"{module}.{ours}", ours))
    ]
    assert not hidden
