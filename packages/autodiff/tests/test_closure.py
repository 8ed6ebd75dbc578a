"""Transformations compose: every stack of three of them, on functions of every kind, against differences.

A function here is a pair: a function of `lax` operations, which is transformed, and its meaning, written with
NumPy loops in extended precision. A stack of transformations has a meaning too: directional derivatives are
differences of the meaning, `vmap` is a loop, `jit` and `checkpoint` are the identity.

Set ``BEDRAX_CLOSURE=all`` to run every stack on every function; by default each function gets all stacks
of depth two, and a part of those of depth three.
"""

import functools
import itertools
import os

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import checkpoint, custom_jvp, custom_vjp, grad, jvp, linearize
from bedrax.batching import vmap
from bedrax.core import config
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.core.typecheck import check_jaxpr
from bedrax.numpy_backend.executor import evaluate

EVERY = os.environ.get("BEDRAX_CLOSURE") == "all"
POINT = np.array([0.3, 0.8])
DIRECTION = np.array([0.6, -0.7])
WEIGHTS = np.array([1.0, 0.5])
SCALES = np.array([1.0, 0.7, 0.4])
wide = np.longdouble

# ---- functions of two numbers, and their meanings


def at(x, i):
    return lax.index_in_dim(x, i, keepdims=False)


def elementwise(x):
    return lax.mul(lax.sin(x), lax.exp(lax.mul(x, 0.5)))


def elementwise_meaning(x):
    return np.sin(x) * np.exp(x / 2)


def matrix(x):
    rows = lax.broadcast_in_dim(x, (3, 2), (1,))
    product = lax.dot_general(lax.sin(rows), lax.cos(rows), (((0,), (0,)), ((), ())))
    return lax.reduce_sum(lax.mul(product, product), axes=(0,))


def matrix_meaning(x):
    product = 3 * np.outer(np.sin(x), np.cos(x))
    return (product * product).sum(0)


def indexing(x):
    y = lax.concatenate([x, lax.rev(x, (0,)), lax.mul(x, x)], 0)
    y = lax.cumsum(y)
    y = lax.sort(y)
    return lax.add(lax.dynamic_slice(y, (1,), (2,)), lax.pad(lax.slice(y, (4,), (5,)), 0.0, [(1, 0, 0)]))


def indexing_meaning(x):
    y = np.sort(np.cumsum(np.concatenate([x, x[::-1], x * x])))
    return y[1:3] + np.array([0 * y[0], y[4]])


@jit
def _inner(x, tree):
    return {"sum": lax.add(x, tree["a"]), "product": lax.mul(x, lax.tanh(tree["b"][0]))}


def nested_jit(x):
    out = _inner(x, {"a": lax.sin(x), "b": [lax.mul(x, 2.0)]})
    return jit(lambda t: lax.mul(t["sum"], t["product"]), inline=True)(out)


def nested_jit_meaning(x):
    return (x + np.sin(x)) * (x * np.tanh(2 * x))


def closing(x):
    """Inner functions of every kind close over `x`."""
    y = lax.exp(lax.neg(x))

    @jit
    def scaled(i):
        return lax.mul(x, lax.add(i, 1.0))

    def step(carry, i):
        return lax.add(carry, lax.mul(scaled(i), y)), lax.mul(carry, x)

    carry, ys = lax.scan(step, x, np.arange(2.0))
    best = lax.cond(lax.lt(at(x, 0), 1.0), lambda: lax.mul(carry, y), lambda: x)
    return lax.add(best, checkpoint(lambda: lax.mul(lax.reduce_sum(ys, axes=(0,)), x))())


def closing_meaning(x):
    y, carry, ys = np.exp(-x), x, []
    for i in range(2):
        carry, ys = carry + x * (i + 1) * y, [*ys, carry * x]
    return carry * y + sum(ys) * x


def scanned(x):
    def step(carry, row):
        a, n = carry["a"], carry["n"]
        new = lax.sin(lax.add(lax.mul(a, row), lax.convert_element_type(n, a.dtype)))
        return {"a": new, "n": lax.add(n, 1)}, (lax.mul(new, row), n)

    rows = lax.concatenate([lax.reshape(x, (1, 2)), lax.reshape(lax.cos(x), (1, 2)), np.ones((1, 2))], 0)
    carry, (ys, counts) = lax.scan(step, {"a": x, "n": 0}, rows, reverse=True)
    weights = lax.broadcast_in_dim(lax.convert_element_type(counts, np.float64), (3, 2), (0,))
    return lax.add(carry["a"], lax.reduce_sum(lax.mul(ys, weights), axes=(0,)))


def scanned_meaning(x):
    a, total = x, 0 * x
    for n, row in enumerate([np.ones(2, wide), np.cos(x), x]):
        a = np.sin(a * row + n)
        total = total + a * row * n
    return a + total


def branching(x):
    def first(x, k):
        return lax.mul(lax.sin(x), k)

    def second(x, k):
        return lax.add(lax.exp(x), k)

    k = lax.reduce_sum(x, axes=(0,))
    out = lax.switch(np.int32(1), [first, second, lambda x, k: x], x, k)
    # The predicate depends on the differentiated and mapped argument.
    return lax.add(out, lax.cond(lax.gt(at(x, 1), 0.5), lambda: lax.mul(x, x), lambda: lax.mul(lax.sin(x), 3.0)))


def branching_meaning(x):
    return np.exp(x) + x.sum() + (x * x if x[1] > 0.5 else 3 * np.sin(x))


def fixed_loop(x):
    return lax.fori_loop(0, 3, lambda i, a: lax.mul(lax.sin(lax.add(a, lax.convert_element_type(i, a.dtype))), x), x)


def fixed_loop_meaning(x):
    a = x
    for i in range(3):
        a = np.sin(a + i) * x
    return a


def while_loop(x):
    def body(carry):
        i, a, k = carry
        return lax.add(i, 1), lax.mul(lax.sin(a), x), lax.add(k, 0.5)

    _, a, k = lax.while_loop(lambda c: lax.lt(lax.convert_element_type(c[0], np.float64), 3.0), body, (0, x, 0.0))
    return lax.mul(a, k)


def while_meaning(x):
    a = x
    for _ in range(3):
        a = np.sin(a) * x
    return a * wide(1.5)


@custom_jvp
def _cube(x, y):
    return lax.mul(lax.mul(x, x), y)


@_cube.defjvp
def _cube_rule(primals, tangents):
    (x, y), (tx, ty) = primals, tangents
    return _cube(x, y), lax.add(lax.mul(tx, lax.mul(lax.mul(x, y), 2.0)), lax.mul(ty, lax.mul(x, x)))


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _apply(f, x):
    return f(x)


_apply.defjvp(lambda f, primals, tangents: jvp(f, primals, tangents))


def with_custom_jvp(x):
    y = lax.scan(lambda c, _: (_cube(c, jit(_cube)(x, 0.5)), None), x, None, length=2)[0]
    return lax.add(_apply(lax.sin, x), y)


def custom_jvp_meaning(x):
    y = x
    for _ in range(2):
        y = y * y * (x * x / 2)
    return np.sin(x) + y


@custom_vjp
def _wave(tree, n):
    return {"out": lax.mul(lax.sin(tree["x"]), lax.convert_element_type(n, tree["x"].dtype))}


def _wave_fwd(tree, n):
    scale = lax.convert_element_type(n, tree["x"].dtype)
    return {"out": lax.mul(lax.sin(tree["x"]), scale)}, (tree["x"], n)


def _wave_bwd(residuals, ct):
    x, n = residuals
    return {"x": lax.mul(ct["out"], lax.mul(lax.cos(x), lax.convert_element_type(n, x.dtype)))}, None


_wave.defvjp(_wave_fwd, _wave_bwd)


def with_custom_vjp(x):
    y = _wave({"x": x}, 3)["out"]
    y = lax.scan(lambda c, _: (_wave({"x": c}, 1)["out"], None), y, None, length=2)[0]
    return jit(lambda y: lax.mul(_wave({"x": y}, 2)["out"], y))(y)


def custom_vjp_meaning(x):
    y = np.sin(np.sin(3 * np.sin(x)))
    return 2 * np.sin(y) * y


def remat_in_scan(x):
    def step(c, n):
        return checkpoint(lambda c: lax.mul(lax.sin(lax.mul(c, x)), n))(c), None

    return checkpoint(lambda c: lax.scan(step, c, np.array([1.0, 2.0]))[0])(x)


def remat_meaning(x):
    return np.sin(np.sin(x * x) * x) * 2


def scalar_shapes(x):
    """Scalars, weak types, integers and constants as intermediate values."""
    a, b = at(x, 0), at(x, 1)
    n = lax.convert_element_type(lax.floor(lax.mul(b, 4.0)), np.int32)
    c = lax.mul(lax.sin(a), lax.integer_pow(b, 3))
    c = lax.select(lax.gt(n, np.int32(1)), lax.add(c, 2.0), c)
    return lax.concatenate([lax.reshape(c, (1,)), lax.reshape(lax.mul(lax.max(a, b), 3.0), (1,))], 0)


def scalar_meaning(x):
    a, b = x
    c = np.sin(a) * b**3
    c = c + 2 if np.floor(b * 4) > 1 else c
    return np.array([c, 3 * max(a, b)])


# name: (function, meaning, kinds of differentiation that it has)
FUNCTIONS = {
    "elementwise": (elementwise, elementwise_meaning, "both"),
    "matrix": (matrix, matrix_meaning, "both"),
    "indexing": (indexing, indexing_meaning, "both"),
    "nested_jit": (nested_jit, nested_jit_meaning, "both"),
    "closing": (closing, closing_meaning, "both"),
    "scan": (scanned, scanned_meaning, "both"),
    "branches": (branching, branching_meaning, "both"),
    "fori": (fixed_loop, fixed_loop_meaning, "both"),
    "while": (while_loop, while_meaning, "forward"),
    "custom_jvp": (with_custom_jvp, custom_jvp_meaning, "both"),
    "custom_vjp": (with_custom_vjp, custom_vjp_meaning, "reverse"),
    "remat": (remat_in_scan, remat_meaning, "both"),
    "scalars": (scalar_shapes, scalar_meaning, "both"),
}

# ---- transformations of functions of two numbers, and their meanings


def total(f):
    return lambda x: lax.reduce_sum(lax.mul(f(x), WEIGHTS), axes=(0,))


def on_batch(f):
    def mapped(x):
        xs = lax.mul(lax.broadcast_in_dim(x, (3, 2), (1,)), np.stack([SCALES, SCALES], 1))
        return lax.reduce_sum(vmap(f)(xs), axes=(0,))

    return mapped


TRANSFORMATIONS = {
    "jit": jit,
    "checkpoint": checkpoint,
    "jvp": lambda f: lambda x: jvp(f, (x,), (DIRECTION,))[1],
    "linearize": lambda f: lambda x: linearize(f, x)[1](DIRECTION),
    "grad": lambda f: grad(total(f)),
    "vmap": on_batch,
}
STEP = wide(2e-3)


def along(f, x, direction):
    """Central difference of fourth order."""
    h = STEP * direction
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * STEP)


MEANINGS = {
    "jvp": lambda f: lambda x: along(f, x, DIRECTION.astype(wide)),
    "linearize": lambda f: lambda x: along(f, x, DIRECTION.astype(wide)),
    "grad": lambda f: (
        lambda x: np.array([along(lambda y: (f(y) * WEIGHTS).sum(), x, e) for e in np.eye(2, dtype=wide)])
    ),
    "vmap": lambda f: lambda x: sum(f(x * s) for s in SCALES.astype(wide)),
}


def has_derivative(kind, stack):
    """Whether the function has all kinds of derivatives that the stack takes."""
    if kind == "forward":
        return "grad" not in stack
    for name in stack:  # the result of reverse mode by a user's rule has all derivatives
        if name in ("jvp", "linearize"):
            return kind != "reverse"
        if name == "grad":
            return True
    return True


@functools.cache
def meaning_of(name, stack):
    f = FUNCTIONS[name][1]
    for t in stack:
        f = MEANINGS[t](f)
    return f(POINT.astype(wide)).astype(np.float64)


def build(name, stack):
    f = FUNCTIONS[name][0]
    for t in stack:
        f = TRANSFORMATIONS[t](f)
    return f


def stacks_for(index):
    out = [s for depth in (0, 1, 2) for s in itertools.product(TRANSFORMATIONS, repeat=depth)]
    deep = list(itertools.product(TRANSFORMATIONS, repeat=3))
    return out + (deep if EVERY else deep[index :: len(FUNCTIONS)])


CASES = [
    pytest.param(name, stack, id=f"{name}-{'.'.join(reversed(stack)) or 'itself'}")
    for i, name in enumerate(FUNCTIONS)
    for stack in stacks_for(i)
]


@pytest.mark.parametrize("name,stack", CASES)
def test_stack(name, stack):
    with config.enable_x64(True), config.enable_checks(True):
        f = build(name, stack)
        if not has_derivative(FUNCTIONS[name][2], stack):
            with pytest.raises((TypeError, ValueError), match="reverse|Reverse|custom_vjp"):
                f(POINT)
            return
        expected = meaning_of(name, tuple(t for t in stack if t in MEANINGS))
        scale = 1e-7 * max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(np.asarray(f(POINT)), expected, atol=scale, rtol=1e-7)
        program = make_jaxpr(f)(POINT)
        check_jaxpr(program)
        (again,) = evaluate(program, POINT)
        np.testing.assert_allclose(again, expected, atol=scale, rtol=1e-7)
