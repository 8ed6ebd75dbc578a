"""The environment of the whole: one `jax`, this one, and the libraries that require it."""

import importlib
import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FACE = tomllib.loads((ROOT / "packages/jax/pyproject.toml").read_text(encoding="utf-8"))["project"]
LIBRARIES = ["flax", "optax", "orbax-checkpoint"]


def test_the_distribution_jax_is_installed_once_and_is_this_repository_s():
    versions = [d.version for d in importlib.metadata.distributions() if d.name.lower() == "jax"]
    assert versions == [FACE["version"]]


def test_jax_imports_as_this_repository_s():
    jax = importlib.import_module("jax")
    assert Path(jax.__file__).resolve().is_relative_to(ROOT / "packages/jax/src")


@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries_of_the_ecosystem_require_jax(library):
    names = {re.match(r"[\w.-]+", r)[0] for r in importlib.metadata.requires(library)}
    assert "jax" in names


@pytest.mark.parametrize(
    "module",
    [
        "flax.linen",
        "flax.nnx",
        "optax",
        pytest.param("orbax.checkpoint", marks=pytest.mark.needs("tensorstore")),
        pytest.param("tensorflow", marks=pytest.mark.needs("tensorflow")),
    ],
)
def test_a_library_of_the_ecosystem_imports(module):
    assert importlib.import_module(module)
