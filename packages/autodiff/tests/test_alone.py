"""An environment with `bedrax-autodiff` and its requirements alone: messages name what is installed there."""

import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

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

    def run(program):
        start = f"import sys; sys.path.append({str(folder)!r})\n"
        out = subprocess.run(
            [sys.executable, "-I", "-S", "-c", start + program], capture_output=True, text=True, check=False
        )
        assert out.returncode == 0, out.stderr
        return out.stdout

    return run


START = """
import importlib.util
import numpy as np
assert importlib.util.find_spec("jax") is None and importlib.util.find_spec("bedrax.numpy") is None
from bedrax import autodiff, batching, lax
from bedrax.core import Primitive, jit

def error(fun, *args):
    try:
        fun(*args)
    except Exception as error:
        print(error)
    else:
        raise AssertionError("no error")

x = np.float32(2)
"""
MISTAKES = {
    "boolean": ("jit(lambda x: x if x > 0 else -x), x", ["To choose by a traced value, use lax.select, lax.cond"]),
    "numpy": ("jit(np.sin), x", ["Use the function of bedrax.numpy (of the package bedrax-numpy) instead"]),
    "list": ("lax.sin, [x]", ["lax.sin: an array or a number is needed", "make lists arrays with numpy.array"]),
    "float": ("jit(float), x", ["x.astype(float) or lax.convert_element_type(x, float)"]),
    "leak": ("kept[0].__add__, x", ["set JAX_CHECK_TRACER_LEAKS or use the `bedrax.core.checking_leaks` context"]),
    "rule": (
        "autodiff.grad(own), x",
        ["from bedrax.autodiff.tables import jvp_rules\n  jvp_rules.add(primitive, rule)"],
    ),
    "custom_vjp": (
        "autodiff.jvp, way_back, (x,), (x,)",
        ["give the function a rule with bedrax.autodiff.custom_jvp to"],
    ),
    "scalar": ("autodiff.grad(lambda x: x), np.ones(2, np.float32)", ["bedrax-inspect has the page of BX-GRAD-SCALAR"]),
}


@pytest.mark.parametrize(("call", "sentences"), MISTAKES.values(), ids=MISTAKES)
def test_messages_name_what_is_installed(run, call, sentences):
    program = f"""{START}
own_p = Primitive("own")
own_p.def_abstract_eval(lambda x: x)
own = own_p.bind
way_back = autodiff.custom_vjp(lambda x: x)
way_back.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
kept = []
jit(lambda x: kept.append(lax.sin(x)))(x)
error({call})
"""
    text = run(program)
    for sentence in sentences:
        assert sentence in text, text
    assert "jax." not in text.replace("_jax.", ""), text


def test_names_that_messages_use_exist_there(run):
    """Each name that stands in place of one of `jax` can be imported."""
    run(f"""{START}
import re
from bedrax.core.public import public, reached
for name in ("custom_jvp", "custom_vjp", "checkpoint", "vjp", "vmap", "jit", "enable_x64", "checking_leaks", "typeof",
             "ad_checkpoint.checkpoint_name", "custom_batching.custom_vmap", "lax.cond"):
    module, _, function = reached("jax." + name).rpartition(".")
    module = "bedrax.lax" if module == "lax" else module
    assert callable(getattr(importlib.import_module(module), function)), name
assert public("a.jax.b /jax.c x_jax.d jax_enable_x64") == "a.jax.b /jax.c x_jax.d jax_enable_x64"
assert public("jax.random.key") == "jax.random.key (of the package bedrax)"
assert public("jnp.sin and lax.sin") == "bedrax.numpy.sin (of the package bedrax-numpy) and lax.sin"
""")


def test_errors_are_pickled_there(run):
    run(f"""{START}
import pickle
try:
    jit(lambda x: 1 if x > 0 else 2)(x)
except TypeError as error:
    caught, again = error, pickle.loads(pickle.dumps(error))
assert type(again) is type(caught) and str(again) == str(caught)
name = f"{{type(caught).__module__}}.{{type(caught).__qualname__}}"
assert name == "bedrax.core.errors.TracerBoolConversionError", name
""")
