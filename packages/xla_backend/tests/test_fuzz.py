"""Random programs under random transformations: XLA and the NumPy evaluation of the same jaxpr agree.

A few programs by default, the same ones in each run. ``nox -s fuzz -- packages/xla_backend/tests/test_fuzz.py`` draws
thousands of new ones. A failure reports a seed: ``check(seed)`` runs its program again.
"""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import bedrax.xla_backend  # noqa: F401  the executor
from bedrax import lax
from bedrax.autodiff import checkpoint, custom_jvp, grad, jvp, linearize
from bedrax.batching import vmap
from bedrax.core import config, dtypes
from bedrax.core.jitting import jit
from bedrax.core.staging import eval_shape, make_jaxpr
from bedrax.core.typecheck import check_jaxpr
from bedrax.numpy_backend.executor import evaluate

DTYPE = np.float64
SHAPES = [(), (3,), (2, 3), (2, 1, 2), (4, 2), (1,)]


def constant(value):
    return DTYPE(value)


def spread(x, shape):
    """`x` broadcast, or sliced, to a shape, so that any two values can be operands of one operation."""
    if x.shape == shape:
        return x
    if x.shape:
        x = lax.reduce_sum(lax.mul(x, constant(0.5)), axes=tuple(range(len(x.shape))))
    return lax.broadcast_in_dim(x, shape, ())


# ---- operations: a function of a value of the given shape (and another value of any shape), or None

UNARY = {
    "sin": lax.sin,
    "cos": lax.cos,
    "tanh": lax.tanh,
    "logistic": lax.logistic,
    "exp": lambda x: lax.exp(lax.tanh(x)),
    "abs": lax.abs,
    "neg": lax.neg,
    "sign": lambda x: lax.sign(lax.add(x, constant(0.1234))),
    "floor": lambda x: lax.floor(lax.add(lax.mul(lax.tanh(x), constant(2.37)), constant(0.123))),
    "square": lambda x: lax.square(lax.tanh(x)),
    "cube": lambda x: lax.integer_pow(lax.sin(x), 3),
    "inverse": lambda x: lax.integer_pow(lax.add(lax.abs(x), constant(1.5)), -2),
    "sqrt": lambda x: lax.sqrt(lax.add(lax.abs(x), constant(1))),
    "rsqrt": lambda x: lax.rsqrt(lax.add(lax.square(x), constant(1))),
    "log1p": lambda x: lax.log1p(lax.abs(x)),
    "expm1": lambda x: lax.expm1(lax.sin(x)),
    "erf": lax.erf,
    "asinh": lax.asinh,
    "atan": lax.atan,
    "cbrt": lambda x: lax.cbrt(lax.add(lax.square(x), constant(1))),
    "integers": lambda x: lax.convert_element_type(
        lax.rem(lax.convert_element_type(lax.mul(lax.tanh(x), constant(37.31)), np.int32), np.int32(5)), x.dtype
    ),
    "clamp": lambda x: lax.clamp(constant(-0.51), x, constant(0.73)),
    "stop": lambda x: lax.stop_gradient(lax.sin(x)),
    "complex": lambda x: lax.real(lax.mul(lax.complex(x, lax.sin(x)), lax.conj(lax.complex(lax.cos(x), x)))),
    "narrow": lambda x: lax.convert_element_type(lax.convert_element_type(lax.tanh(x), np.float32), x.dtype),
    "bits": lambda x: lax.convert_element_type(
        lax.bitwise_xor(lax.convert_element_type(lax.mul(x, constant(9.77)), np.int32), np.int32(3)), x.dtype
    ),
}
BINARY = {
    "add": lax.add,
    "sub": lax.sub,
    "mul": lambda x, y: lax.mul(lax.tanh(x), y),
    "max": lax.max,
    "min": lambda x, y: lax.min(lax.sin(x), y),
    "div": lambda x, y: lax.div(x, lax.add(lax.abs(y), constant(1))),
    "atan2": lambda x, y: lax.atan2(x, lax.add(lax.abs(y), constant(1))),
    "pow": lambda x, y: lax.pow(lax.add(lax.abs(lax.sin(x)), constant(0.5)), lax.tanh(y)),
    "where": lambda x, y: lax.select(lax.gt(lax.add(x, constant(0.0137)), y), lax.sin(x), y),
    "rem": lambda x, y: lax.rem(lax.mul(x, constant(3.17)), lax.add(lax.abs(y), constant(1.01))),
    "nextafter": lambda x, y: lax.add(x, lax.nextafter(*map(lax.stop_gradient, (y, x)))),
}


def steps_of(x):
    return lax.floor(lax.add(lax.mul(x, constant(977.31)), constant(0.123)))


def axis_of(rng, shape):
    return rng.randrange(len(shape))


def shaping(rng, shape):
    """A random operation that depends on the shape."""
    rank = len(shape)
    size = int(np.prod(shape))
    if not rank:
        return rng.choice([lambda x: lax.broadcast(x, (2,)), lambda x: lax.expand_dims(x, (0,))])
    a = axis_of(rng, shape)
    n = shape[a]
    start = rng.randrange(n)
    low, high, inner = rng.randrange(-1, 2), rng.randrange(-1, 2), rng.randrange(2)
    if n + low + high < 1:
        low = high = 0
    order = tuple(rng.sample(range(rank), rank))
    indices = np.array([rng.randrange(-1, n + 1) for _ in range(3)], np.int32)
    last = shape[-1]

    def gather(x):
        found = [lax.dynamic_index_in_dim(x, i, a) for i in indices]
        return lax.concatenate(found, a)

    def scatter(x):
        rows = lax.mul(lax.slice_in_dim(x, start, start + 1, axis=a), constant(0.7))
        return lax.dynamic_update_slice_in_dim(x, rows, indices[0], a)

    def accumulate(x):
        moved = lax.transpose(x, (a, *(i for i in range(rank) if i != a)))
        clipped = np.clip(indices, 0, n - 1)[:, None]
        dims = lax.ScatterDimensionNumbers(tuple(range(1, rank)), (0,), (0,))
        updates = lax.concatenate([lax.slice_in_dim(lax.sin(moved), 0, 1)] * 3, 0)
        return lax.scatter_add(moved, clipped, updates, dims)

    choices = [
        lambda x: lax.reshape(x, (size,)),
        lambda x: lax.transpose(x, order),
        lambda x: lax.rev(x, (a,)),
        lambda x: lax.slice_in_dim(x, start, n, axis=a),
        lambda x: lax.pad(x, constant(0.3), [(low, high, inner) if i == a else (0, 0, 0) for i in range(rank)]),
        lambda x: lax.concatenate([x, lax.cos(x)], a),
        lambda x: lax.reduce_sum(x, axes=(a,)),
        lambda x: lax.reduce_max(x, axes=(a,)),
        lambda x: lax.reduce_prod(lax.cos(x), axes=(a,)),
        # Rounded to coarse steps: the order of two values that differ by a rounding is undefined.
        lambda x: lax.convert_element_type(lax.argmax(steps_of(x), a, np.int32), x.dtype),
        lambda x: lax.cumsum(x, a, reverse=bool(inner)),
        lambda x: lax.cumprod(lax.cos(x), a),
        lambda x: lax.cummax(x, a),
        lambda x: lax.cumlogsumexp(lax.sin(x), a),
        lambda x: lax.sort(x, dimension=a),
        lambda x: lax.mul(x, lax.convert_element_type(lax.broadcasted_iota(np.int32, shape, a), x.dtype)),
        lambda x: lax.dot_general(lax.sin(x), x, (((rank - 1,), (rank - 1,)), ((), ()))),
        lambda x: lax.dot_general(lax.tanh(x), x, (((a,), (a,)), (tuple(range(a)), tuple(range(a))))),
        lambda x: lax.reduce_window(
            lax.cos(x), constant(0), lax.add, (1,) * (rank - 1) + (min(2, last),), (1,) * rank, "VALID"
        ),
        gather,
        scatter,
        accumulate,
        lambda x: lax.associative_scan(lambda p, q: lax.add(lax.mul(p, constant(0.5)), q), x, axis=a),
        lambda x: lax.top_k(lax.add(x, constant(0)), last)[0],
    ]
    return rng.choice(choices)


def structured(rng, shape, depth):
    """A random operation with nested programs."""
    first, second = (program(rng, shape, depth - 1) for _ in range(2))
    kind = rng.choice(
        ["jit", "checkpoint", "cond", "switch", "scan", "scan_xs", "fori", "custom_jvp", "vmap", "map", "grad"]
    )
    steps, unroll, reverse = rng.randrange(1, 4), rng.choice([1, 2]), rng.random() < 0.5
    threshold = constant(rng.uniform(-1, 1))
    mean = lambda x: lax.reduce_sum(x, axes=tuple(range(len(x.shape))))
    if kind == "jit":
        return jit(first)
    if kind == "checkpoint":
        return checkpoint(first)
    if kind == "cond":
        return lambda x: lax.cond(lax.gt(mean(x), threshold), first, second, x)
    if kind == "switch":
        return lambda x: lax.switch(
            lax.convert_element_type(lax.mul(lax.tanh(mean(x)), constant(2.9)), np.int32), [first, second, lax.sin], x
        )
    if kind == "scan":
        return lambda x: lax.scan(lambda c, _: (lax.tanh(first(c)), None), x, None, length=steps, unroll=unroll)[0]
    if kind == "scan_xs":

        def body(c, row):
            new = lax.tanh(lax.add(first(c), row))
            return new, lax.mul(new, spread(second(lax.add(row, c)), new.shape))

        def loop(x):
            rows = lax.broadcast(x, (steps,))
            carry, ys = lax.scan(body, lax.cos(x), rows, reverse=reverse)
            return lax.add(carry, lax.reduce_sum(ys, axes=(0,)))

        return loop
    if kind == "fori":
        return lambda x: lax.fori_loop(
            0, steps, lambda i, c: lax.add(lax.tanh(first(c)), lax.convert_element_type(i, c.dtype)), x
        )
    if kind == "custom_jvp":
        f = custom_jvp(first)
        f.defjvp(lambda primals, tangents: jvp(first, primals, tangents))
        return f
    if kind == "grad":
        return grad(lambda x: mean(lax.sin(first(x))))
    if kind == "vmap" and shape:
        inner = program(rng, shape[1:], depth - 1)
        return vmap(inner)
    if kind == "map" and shape:
        inner = program(rng, shape[1:], depth - 1)
        return lambda x: lax.map(inner, x)
    return first


def program(rng, shape, depth=2):
    """A random function from arrays of `shape` to arrays of `shape`."""
    types = [np.empty(shape, DTYPE)]
    steps = []  # (function, positions of its arguments among the values so far)
    for _ in range(rng.randrange(1, 6)):
        i = rng.randrange(len(types))
        roll = rng.random()
        if roll < 0.3:
            f, at = UNARY[rng.choice(list(UNARY))], (i,)
        elif roll < 0.5:
            op, j = BINARY[rng.choice(list(BINARY))], rng.randrange(len(types))
            f, at = (lambda x, y, op=op: op(x, spread(y, x.shape))), (i, j)
        elif roll < 0.8 or not depth:
            f, at = shaping(rng, types[i].shape), (i,)
        else:
            f, at = structured(rng, types[i].shape, depth), (i,)
        steps.append((f, at))
        types.append(eval_shape(f, *(types[k] for k in at)))

    def run(x):
        values = [x]
        for f, at in steps:
            values.append(f(*(values[k] for k in at)))
        out = lax.mul(x, constant(0.1))
        for v in values[1:]:
            out = lax.add(out, spread(v, x.shape))
        return out

    return run


# ---- transformations of such functions


def direction(x):
    return lax.cos(
        lax.add(
            lax.mul(lax.convert_element_type(lax.iota(np.int32, max(1, x.size)), x.dtype), constant(1.7)), constant(0.3)
        )
    )


def tangent(x):
    return lax.reshape(direction(x), x.shape)


def reverse_mode(f):
    return grad(lambda x: lax.reduce_sum(lax.mul(f(x), tangent(x)), axes=tuple(range(len(x.shape)))))


def batched(in_axis, out_axis):
    def transform(f):
        def g(x):
            n = len(x.shape) + 1
            a, b = in_axis % n, out_axis % n
            scales = lax.reshape(np.array([1.0, -0.6, 0.3]), tuple(3 if i == a else 1 for i in range(n)))
            others = tuple(i for i in range(n) if i != a)
            shape = (*x.shape[:a], 3, *x.shape[a:])
            xs = lax.mul(lax.broadcast_in_dim(x, shape, others), lax.broadcast_in_dim(scales, shape, tuple(range(n))))
            return lax.reduce_sum(vmap(f, in_axes=a, out_axes=b)(xs), axes=(b,))

        return g

    return transform


TRANSFORMATIONS = {
    "jit": jit,
    "grad": reverse_mode,
    "jvp": lambda f: lambda x: jvp(f, (x,), (tangent(x),))[1],
    "linearize": lambda f: lambda x: linearize(f, x)[1](tangent(x)),
    "vmap": batched(0, 0),
    "vmap last": batched(-1, 0),
    "vmap to last": batched(0, -1),
    "checkpoint": checkpoint,
    "scan": lambda f: lambda x: lax.scan(lambda c, k: (lax.sin(lax.mul(f(c), k)), None), x, np.array([1.0, 0.5]))[0],
}


def case(seed):
    """(description, function, point) of a seed."""
    rng = random.Random(seed)
    shape = rng.choice(SHAPES)
    f = program(rng, shape)
    stack = [rng.choice(list(TRANSFORMATIONS)) for _ in range(rng.randrange(4))]
    for name in stack:
        f = TRANSFORMATIONS[name](f)
    x = np.random.default_rng(seed).normal(size=shape).astype(DTYPE)
    return f"seed {seed}: {' of '.join(reversed(stack)) or 'itself'} at {shape}", f, x


def check(seed):
    with config.enable_x64(True), config.enable_checks(True):
        what, f, x = case(seed)
        jaxpr = make_jaxpr(f)(x)
        check_jaxpr(jaxpr)
        with np.errstate(all="ignore"):
            (expected,) = evaluate(jaxpr, x)
        actual = np.asarray(jit(f)(x))
        assert actual.shape == x.shape and actual.dtype == dtypes.canonicalize_dtype(DTYPE), what
        if not np.all(np.isfinite(expected)):
            assert np.array_equal(np.isfinite(expected), np.isfinite(actual)), what
            return
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        # A sum that NumPy and XLA round differently may be large before it cancels, and nested loops may be chaotic.
        # The tolerance is the change of NumPy's result when the argument changes by its last bit.
        with np.errstate(all="ignore"):
            moved = [evaluate(jaxpr, np.nextafter(x, end * np.inf, dtype=DTYPE))[0] for end in (-1, 1)]
        noise = max(float(np.nan_to_num(np.abs(y - expected)).max(initial=0)) for y in moved)
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-8 * scale + 10 * noise, err_msg=what)


_EXAMPLES = settings().max_examples


# Each case compiles several programs: a quarter of the usual number, but all of them in the fuzz session.
@settings(max_examples=_EXAMPLES if _EXAMPLES > 1000 else _EXAMPLES // 4)
@given(st.integers(0, 2**32 - 1))
def test_xla_agrees_with_numpy(seed):
    check(seed)
