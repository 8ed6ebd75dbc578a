"""Every method and property of `jax.Array` on concrete values, and under jit, vmap and grad."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bedrax.core.array import NUMPY_METHODS, Array
from bedrax.core.tracing import Tracer
from bedrax.core.typed_values import TypedValue

X = np.arange(1.0, 10.0, dtype=np.float32).reshape(3, 3) / 4

# A use of each: a function of an array that returns an array (or a tuple of them).
USES = {
    "T": lambda x: x.T,
    "__contains__": None,  # gives a Python bool
    "__array_module__": None,
    "__array_namespace__": None,  # gives a module
    "__getitem__": lambda x: x[1],
    "__matmul__": lambda x: x @ x,
    "__rmatmul__": lambda x: np.eye(3, dtype=np.float32) @ x,
    "__round__": lambda x: round(x),
    "__setitem__": None,  # raises: arrays are immutable
    "argpartition": lambda x: x.argpartition(1),
    "astype": lambda x: x.astype(np.int32),
    "at": lambda x: x.at[0].set(1.0),
    "byteswap": None,  # of concrete arrays only
    "choose": lambda x: x.astype(np.int32).choose([jnp.zeros(3), jnp.ones(3)], mode="clip"),
    "clip": lambda x: x.clip(0.5, 1.5),
    "compress": lambda x: x.compress(np.array([True, False, True]), axis=0),
    "copy": lambda x: x.copy(),
    "dot": lambda x: x.dot(x),
    "flat": None,  # an iterator
    "nonzero": lambda x: x.nonzero(size=4),
    "repeat": lambda x: x.repeat(2, axis=0),
    "reshape": lambda x: x.reshape(9),
    "searchsorted": lambda x: x.ravel().searchsorted(1.0),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "take": lambda x: x.take(np.array([0, 1]), axis=0),
    "tobytes": None,  # of concrete arrays only
    "view": lambda x: x.view(np.int32),
    "imag": lambda x: x.imag,
    "real": lambda x: x.real,
    "mT": lambda x: x.mT,
}
METHODS = sorted(name for name in NUMPY_METHODS if USES.get(name, True) is not None)
PROPERTIES = ("shape", "dtype", "weak_type", "ndim", "size", "itemsize", "nbytes")


def use(name, x):
    return USES[name](x) if name in USES else getattr(x, name)()


def as_numpy(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def agree(actual, expected):
    for a, b in zip(as_numpy(actual), as_numpy(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
        assert a.dtype == b.dtype


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    expected = use(name, jnp.asarray(X))
    agree(jax.jit(lambda x: use(name, x))(X), expected)
    batch = jnp.stack([X, 2 * X])
    agree(
        jax.vmap(lambda x: use(name, x))(batch), jax.tree.map(lambda *r: jnp.stack(r), *[use(name, b) for b in batch])
    )
    total = lambda x: sum(jnp.sum(y) for y in jax.tree.leaves(use(name, x)) if jnp.issubdtype(y.dtype, jnp.floating))
    if isinstance(total(jnp.asarray(X)), jax.Array):
        agree(jax.grad(total)(X), jax.jit(jax.grad(total))(X))


@pytest.mark.parametrize("name", PROPERTIES)
def test_properties_of_tracers_equal_those_of_arrays(name):
    expected = getattr(jnp.asarray(X), name)
    seen = []

    def look(x):
        seen.append(getattr(x, name))
        return jnp.sum(x)

    jax.jit(look)(X)
    jax.grad(look)(jnp.asarray(X))
    jax.vmap(look)(jnp.stack([X, X]))
    assert seen == [expected] * 3


def _subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def test_no_attribute_of_a_tracer_hides_one_of_arrays():

    names = set(NUMPY_METHODS) | {n for n in vars(Array) if not n.startswith("__")}
    kinds = [
        k for k in (Tracer, *_subclasses(Tracer)) if not issubclass(k, TypedValue) and k.__name__ != "RefTracer"
    ]  # they are not arrays
    assert len(kinds) > 5
    for cls in kinds:
        slots = cls.__dict__.get("__slots__", ())
        assert not names.intersection((slots,) if isinstance(slots, str) else slots), cls
        for name in NUMPY_METHODS:
            assert name not in vars(cls), f"{cls.__name__}.{name}"
