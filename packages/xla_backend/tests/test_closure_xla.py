"""A sample of stacks of three transformations under XLA: compiled, and operation by operation, against NumPy.

The tests of autodiff compare the values of the stacks with NumPy. These tests compare XLA with it, eagerly and
compiled, and check that results are on a device.
"""

import functools
import itertools

import numpy as np
import pytest

import bedrax.xla_backend  # noqa: F401  the executor
from bedrax import lax
from bedrax.autodiff import checkpoint, custom_vjp, grad, jvp, linearize
from bedrax.batching import vmap
from bedrax.core import array, config
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.numpy_backend.executor import evaluate
from bedrax.numpy_backend.host_array import HostArray

POINT = np.array([0.3, 0.8, -0.5])
DIRECTION = np.array([0.6, -0.7, 0.2])


def elementwise(x):
    return lax.mul(lax.sin(x), lax.exp(lax.mul(x, 0.5)))


def scanned(x):
    def step(c, row):
        c = lax.sin(lax.add(lax.mul(c, row), x))
        return c, lax.mul(c, row)

    c, ys = lax.scan(step, x, lax.broadcast(lax.cos(x), (3,)), reverse=True)
    return lax.add(c, lax.reduce_sum(ys, axes=(0,)))


def branching(x):
    total = lax.reduce_sum(x, axes=(0,))
    return lax.switch(
        np.int32(1), [lax.sin, lambda x: lax.mul(x, total), lax.cos], lax.cond(lax.gt(total, 0.5), lax.sin, lax.exp, x)
    )


@custom_vjp
def _wave(x, n):
    return lax.mul(lax.sin(x), n)


_wave.defvjp(
    lambda x, n: (lax.mul(lax.sin(x), n), (x, n)), lambda r, ct: (lax.mul(ct, lax.mul(lax.cos(r[0]), r[1])), None)
)


def with_rules(x):
    return checkpoint(lambda x: lax.mul(_wave(jit(lax.tanh)(x), 2.0), x))(x)


def indexing(x):
    y = lax.sort(lax.concatenate([x, lax.mul(x, x)], 0))
    return lax.add(lax.dynamic_slice(lax.cumsum(y), (2,), (3,)), lax.rev(lax.slice(y, (0,), (3,)), (0,)))


FUNCTIONS = {
    "elementwise": elementwise,
    "scan": scanned,
    "branches": branching,
    "rules": with_rules,
    "indexing": indexing,
}


def on_batch(f):
    def mapped(x):
        xs = lax.mul(lax.broadcast(x, (2,)), np.array([[1.0], [0.4]]) * np.ones((2, 3)))
        return lax.reduce_sum(vmap(f, in_axes=1, out_axes=1)(lax.transpose(xs, (1, 0))), axes=(1,))

    return mapped


TRANSFORMATIONS = {
    "jit": jit,
    "checkpoint": checkpoint,
    "jvp": lambda f: lambda x: jvp(f, (x,), (DIRECTION,))[1],
    "linearize": lambda f: lambda x: linearize(f, x)[1](DIRECTION),
    "grad": lambda f: grad(lambda x: lax.reduce_sum(f(x), axes=(0,))),
    "vmap": on_batch,
}


def cases():
    stacks = list(itertools.product(TRANSFORMATIONS, repeat=3))
    for i, name in enumerate(FUNCTIONS):
        for stack in stacks[7 * i :: 61]:
            forward_first = next((t for t in stack if t in ("jvp", "linearize", "grad")), "grad") != "grad"
            if not (name == "rules" and forward_first):
                yield pytest.param(name, stack, id=f"{name}-{'.'.join(reversed(stack))}")


@pytest.mark.parametrize("name,stack", list(cases()))
def test_stack(name, stack):
    with config.enable_x64(True):
        f = functools.reduce(lambda f, t: TRANSFORMATIONS[t](f), stack, FUNCTIONS[name])
        (expected,) = evaluate(make_jaxpr(f)(POINT), POINT)
        for result in (f(POINT), jit(f)(POINT)):
            assert isinstance(result, array.Array) and not isinstance(result, HostArray)
            np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-9, atol=1e-12)
