"""An environment with `bedrax-autodiff` and its requirements alone: messages name what is installed there."""

import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs/alone.py"
PACKAGES = ("pytree", "core", "lax", "numpy_backend", "batching", "autodiff")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a program in a process that finds only the required packages, and their metadata."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "bedrax").mkdir()

    def link(found, name=None):
        (folder / (name or found.name)).symlink_to(found)

    for name in PACKAGES:
        link(Path(importlib.util.find_spec(f"bedrax.{name}").submodule_search_locations[0]), f"bedrax/{name}")
        link(Path(importlib.metadata.distribution(f"bedrax-{name.replace('_', '-')}")._path))
    for name in ("numpy", "ml_dtypes"):
        place = Path(importlib.util.find_spec(name).submodule_search_locations[0])
        for found in place.parent.glob(f"{name}*"):
            if found.name in (name, f"{name}.libs"):
                link(found)

    def run(name):
        command = [sys.executable, "-I", "-S", PROGRAM, str(folder), name]
        out = subprocess.run(command, capture_output=True, text=True, check=False)
        assert out.returncode == 0, out.stderr
        return out.stdout

    return run


# Mistake -> sentences of its message.
MISTAKES = {
    "boolean": ["To choose by a traced value, use lax.select, lax.cond"],
    "numpy": ["Use the function of bedrax.numpy (of the package bedrax-numpy) instead"],
    "list": ["lax.sin: an array or a number is needed", "make lists arrays with numpy.array"],
    "float": ["x.astype(float) or lax.convert_element_type(x, float)"],
    "leak": ["set JAX_CHECK_TRACER_LEAKS or use the `bedrax.core.checking_leaks` context"],
    "rule": ["from bedrax.autodiff.tables import jvp_rules\n  jvp_rules.add(primitive, rule)"],
    "custom_vjp": ["give the function a rule with bedrax.autodiff.custom_jvp to"],
    "scalar": ["bedrax-inspect has the page of BX-GRAD-SCALAR"],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_messages_name_no_package_that_is_absent(run, name):
    text = run(name)
    for sentence in MISTAKES[name]:
        assert sentence in text, text
    assert "jax." not in text.replace("_jax.", ""), text


def test_names_that_messages_use_exist_there(run):
    """Each name that stands in place of one of `jax` can be imported."""
    run("names")


def test_errors_are_pickled_there(run):
    run("pickles")
