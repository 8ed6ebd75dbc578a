"""Functions, primitives and arrays are pickled and sent to other processes."""

import contextlib
import importlib
import inspect
import operator
import pickle
import pkgutil
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

FUNCTIONS = {
    "jit": lambda: jax.jit(lambda x: jnp.sin(x)),
    "vmap": lambda: jax.vmap(jnp.sin),
    "grad": lambda: jax.grad(jnp.sin),
    "value_and_grad": lambda: jax.value_and_grad(lambda x: x * jnp.tanh(x)),
    "jacfwd": lambda: jax.jacfwd(jnp.sin),
    "hessian": lambda: jax.hessian(jnp.cos),
    "checkpoint": lambda: jax.checkpoint(jnp.sin),
    "jit of grad": lambda: jax.jit(jax.grad(lambda x: x**3)),
    "vmap of jit": lambda: jax.vmap(jax.jit(jnp.sin), in_axes=None, axis_size=1),
    "vectorize": lambda: jnp.vectorize(lambda x: x + 1),
    "loop": lambda: lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_by_value(name):
    cloudpickle = pytest.importorskip("cloudpickle")
    x = np.float32([0.5]) if name == "vmap" else np.float32(0.5)
    f = FUNCTIONS[name]()
    again = cloudpickle.loads(cloudpickle.dumps(f))
    for a, b in zip(jax.tree.leaves(again(x)), jax.tree.leaves(f(x)), strict=True):
        np.testing.assert_allclose(a, b)


@jax.jit
def of_this_module(x):
    return x + 1


def test_by_name():
    for f in (of_this_module, jnp.sin, jnp.add, jnp.median, jax.nn.relu, lax.scan, lax.sin_p, jnp.float32):
        assert pickle.loads(pickle.dumps(f)) is f
    made = pickle.loads(pickle.dumps(jnp.frompyfunc(max, 2, 1)))
    assert (made.nin, made.nout) == (2, 1)
    with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
        jax.jit(lambda x: 1 if x else 2)(1)
    error = pickle.loads(pickle.dumps(caught.value))
    assert type(error) is type(caught.value) and str(error) == str(caught.value)


def test_objects_name_their_public_modules():
    assert jnp.ones(1).__array_namespace__() is jnp
    for name in ("ConcretizationTypeError", "UnexpectedTracerError", "TracerBoolConversionError"):
        assert getattr(jax.errors, name).__module__ == "jax.errors"


def modules_of_the_face():
    for found in pkgutil.walk_packages(jax.__path__, "jax.", onerror=lambda name: None):
        if "._" not in found.name:
            with warnings.catch_warnings(), contextlib.suppress(ImportError):  # ImportError: an extra is not installed
                warnings.simplefilter("ignore", DeprecationWarning)
                yield importlib.import_module(found.name)


def test_every_function_and_class_is_found_by_its_module_and_name():
    wrong, count = [], 0
    for module in (jax, *modules_of_the_face()):
        for name in getattr(module, "__all__", ()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                try:
                    value = getattr(module, name)
                except AttributeError:  # a submodule that needs a library
                    with pytest.raises(ImportError):
                        importlib.import_module(f"{module.__name__}.{name}")
                    continue
                except ModuleNotFoundError as error:  # a function that needs a library
                    assert error.name.partition(".")[0] not in ("bedrax", "jax")
                    continue
            home = str(getattr(value, "__module__", ""))
            if not (inspect.isclass(value) or inspect.isroutine(value)) or home.partition(".")[0] not in (
                "bedrax",
                "jax",
            ):
                continue
            count += 1
            found = operator.attrgetter(value.__qualname__)
            try:
                same = found(importlib.import_module(home)) is value
            except AttributeError:
                same = False
            wrong += [] if same else [f"{module.__name__}.{name} has the home {home}.{value.__qualname__}"]
    assert not wrong
    assert count > 2000
