"""A process that finds only the packages in a folder: prints the message of a mistake, or checks names and pickles.

python -I -S alone.py FOLDER NAME
"""

import importlib
import importlib.util
import pickle
import sys

sys.path.append(sys.argv[1])

import numpy as np

from bedrax import autodiff, lax
from bedrax.core import Primitive, jit
from bedrax.core.public import public, reached

assert importlib.util.find_spec("jax") is None and importlib.util.find_spec("bedrax.numpy") is None

x = np.float32(2)
kept = []


def own():
    primitive = Primitive("own")
    primitive.def_abstract_eval(lambda x: x)
    return primitive.bind


def way_back():
    function = autodiff.custom_vjp(lambda x: x)
    function.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
    return function


def leaked():
    jit(lambda x: kept.append(lax.sin(x)))(x)
    return kept[0] + x


MISTAKES = {
    "boolean": lambda: jit(lambda x: x if x > 0 else -x)(x),
    "numpy": lambda: jit(np.sin)(x),
    "list": lambda: lax.sin([x]),
    "float": lambda: jit(float)(x),
    "leak": leaked,
    "rule": lambda: autodiff.grad(own())(x),
    "custom_vjp": lambda: autodiff.jvp(way_back(), (x,), (x,)),
    "scalar": lambda: autodiff.grad(lambda x: x)(np.ones(2, np.float32)),
}
NAMES = (
    "custom_jvp custom_vjp checkpoint vjp vmap jit enable_x64 checking_leaks typeof ad_checkpoint.checkpoint_name"
    " custom_batching.custom_vmap lax.cond"
)


def names():
    for name in NAMES.split():
        module, _, function = reached(f"jax.{name}").rpartition(".")
        module = "bedrax.lax" if module == "lax" else module
        assert callable(getattr(importlib.import_module(module), function)), name
    assert public("a.jax.b /jax.c x_jax.d jax_enable_x64") == "a.jax.b /jax.c x_jax.d jax_enable_x64"
    assert public("jax.random.key") == "jax.random.key (of the package bedrax)"
    assert public("jnp.sin and lax.sin") == "bedrax.numpy.sin (of the package bedrax-numpy) and lax.sin"


def pickles():
    try:
        jit(lambda x: 1 if x > 0 else 2)(x)
    except TypeError as error:
        caught, again = error, pickle.loads(pickle.dumps(error))
    assert type(again) is type(caught) and str(again) == str(caught)
    name = f"{type(caught).__module__}.{type(caught).__qualname__}"
    assert name == "bedrax.core.errors.TracerBoolConversionError", name


if sys.argv[2] in MISTAKES:
    try:
        MISTAKES[sys.argv[2]]()
    except Exception as error:
        print(error)
    else:
        raise AssertionError("no error")
else:
    {"names": names, "pickles": pickles}[sys.argv[2]]()
