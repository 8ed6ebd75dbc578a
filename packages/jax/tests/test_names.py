"""The stubs of the face against the layers: every name is where its stub says, and is public there."""

import ast
import importlib
import importlib.util
import types
from pathlib import Path

import jax
import pytest

HOUSE = Path(jax.__file__).parent
STUBS = sorted(HOUSE.rglob("*.pyi"))
WITHOUT_TF = importlib.util.find_spec("bedrax.jax2tf") is None


def module_of(path):
    return ".".join(("jax", *path.relative_to(HOUSE).with_suffix("").parts)).removesuffix(".__init__")


def imports(path):
    """The imports of a stub: its home, and the names (theirs, ours)."""
    module = module_of(path)
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    for statement in ast.parse(path.read_text()).body:
        assert isinstance(statement, ast.ImportFrom), f"line {statement.lineno} of {path} is no import"
        home = importlib.util.resolve_name("." * statement.level + (statement.module or ""), package)
        yield home, [(n.name, n.asname) for n in statement.names]


@pytest.mark.parametrize("path", STUBS, ids=module_of)
def test_a_stub_names_what_its_homes_export(path):
    module = importlib.import_module(module_of(path))
    wrong, seen = [], []
    for home_name, names in imports(path):
        if home_name == module.__name__:
            seen += [ours for _, ours in names]
            wrong += [theirs for theirs, _ in names if not is_module(f"{home_name}.{theirs}")]
            continue
        home = importlib.import_module(home_name)
        for theirs, ours in names:
            if theirs == "*":
                continue
            seen.append(ours)
            exported = getattr(home, "__all__", None)
            value = getattr(home, theirs, None)
            private = theirs.startswith("_")
            public = private or isinstance(value, types.ModuleType) or exported is None or theirs in exported
            if not hasattr(home, theirs) or not public or ours is None:
                wrong.append(f"{home_name}.{theirs}")
    assert not wrong, f"{path.name} names what its homes do not export (or without `as`): {wrong}"
    assert len(seen) == len(set(seen)), "a name twice"


def is_module(name):
    if WITHOUT_TF and name.startswith("jax.experimental.jax2tf"):
        return True
    return importlib.util.find_spec(name) is not None


@pytest.mark.parametrize("path", STUBS, ids=module_of)
def test_a_stub_is_read_by_its_module(path):
    module = importlib.import_module(module_of(path))
    assert module.__all__ == sorted(module.__all__)
    for name in module.__all__:
        if name != "jax2tf" or not WITHOUT_TF:
            getattr(module, name)


def test_every_module_of_a_package_is_its_attribute():
    for path in HOUSE.rglob("*.py"):
        module = module_of(path)
        package, _, name = module.rpartition(".")
        if package:
            assert name in dir(importlib.import_module(package)), f"{package} has no {name}"


def test_no_submodule_hides_a_name():
    # Importing a submodule sets the attribute of its package: it must be what the attribute is, or come first.
    for path in STUBS:
        module = module_of(path)
        for home, names in imports(path):
            for theirs, ours in names:
                if path.stem == "__init__" and (path.parent / f"{ours}.py").exists():
                    assert (home, theirs) in ((module, ours), (f"{module}.{ours}", theirs)), (
                        f"{module}.{ours}"
                    )
