"""TensorFlow for cumulative reductions: its own where it has one, otherwise doubling in log2(n) steps."""

from __future__ import annotations

from bedrax.core import dims
from bedrax.jax2tf.carriers import accumulator, carrier, in_carrier, scalar, tensorflow
from bedrax.jax2tf.lowering.elementwise import extreme
from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives import cumulative as p


def _sums(dtype):
    """The dtype to accumulate in; TensorFlow's XLA has these operations for 32 bits and more only."""
    tf = tensorflow()
    if dtype.is_integer and dtype.size < 4:
        return tf.int32
    return accumulator(dtype)


def _cumsum(ctx, x, *, axis, reverse):
    tf = tensorflow()
    if x.dtype.is_complex:  # for which there is no kernel in TensorFlow's XLA
        return tf.complex(
            *[tf.cumsum(part, axis, reverse=reverse) for part in (tf.math.real(x), tf.math.imag(x))]
        )
    return tf.cumsum(x, axis, reverse=reverse)


def _cumprod(ctx, x, *, axis, reverse):
    if x.dtype.is_complex:
        return _doubling(
            ctx, [x], ctx.avals_in[0].shape[axis], axis, reverse, lambda a, b: [a[0] * b[0]]
        )[0]  # fmt: skip
    return tensorflow().math.cumprod(x, axis, reverse=reverse)


tf_rules.add(p.cumsum_p, in_carrier(_cumsum, _sums))
tf_rules.add(p.cumprod_p, in_carrier(_cumprod, _sums))


def _doubling(ctx, xs, size, axis: int, reverse: bool, combine):
    """Inclusive scan of tensors by an associative `combine(earlier, later)` along an axis (Hillis and Steele 1986)."""
    tf = tensorflow()
    front = (slice(None),) * axis

    def step(d, xs):
        if reverse:
            kept, later, earlier = slice(-d, None), slice(None, -d), slice(d, None)
        else:
            kept, later, earlier = slice(None, d), slice(d, None), slice(None, -d)
        new = combine([x[(*front, earlier)] for x in xs], [x[(*front, later)] for x in xs])
        pairs = [
            (y, x[(*front, kept)]) if reverse else (x[(*front, kept)], y)
            for x, y in zip(xs, new, strict=True)
        ]
        return [tf.concat(pair, axis) for pair in pairs]

    if dims.is_constant_dim(size):
        d = 1
        while d < size:
            xs = step(d, xs)
            d *= 2
        return xs
    n = ctx.dim(size)
    invariants = [tf.TensorShape([None if i == axis else m for i, m in enumerate(x.shape)]) for x in xs]
    _, *xs = tf.while_loop(
        lambda d, *_: d < n, lambda d, *xs: [d * 2, *step(d, xs)], [tf.constant(1), *xs],
        shape_invariants=[tf.TensorShape([]), *invariants],
    )  # fmt: skip
    return xs


def _scan(prim, combine, target) -> None:
    def rule(ctx, x, *, axis, reverse):
        size = ctx.avals_in[0].shape[axis]
        (out,) = _doubling(ctx, [x], size, axis, reverse, lambda a, b: [combine(ctx, a[0], b[0])])
        return out

    tf_rules.add(prim, in_carrier(rule, target))


def _log_add_exp(ctx, x, y):
    tf = tensorflow()
    if x.dtype.is_complex:
        a, b = tf.math.real(x), tf.math.real(y)
        m = tf.maximum(a, b)
        m = tf.where(tf.math.is_finite(m), m, tf.zeros_like(m))
        m = tf.complex(m, tf.zeros_like(m))
        return tf.math.log(tf.exp(x - m) + tf.exp(y - m)) + m
    high, low = tf.maximum(x, y), tf.minimum(x, y)
    apart = low - high  # nan where both are infinite, and where either is nan
    return tf.where(
        tf.equal(low, high), high + scalar(0.6931471805599453, x), high + tf.math.log1p(tf.exp(apart))
    )


_scan(p.cummax_p, lambda ctx, x, y: extreme(ctx, x, y, True), carrier)
_scan(p.cummin_p, lambda ctx, x, y: extreme(ctx, x, y, False), carrier)
_scan(p.cumlogsumexp_p, _log_add_exp, accumulator)


def _recurrence(ctx, a, b, *, axis, reverse):
    """``y[i] = b[i] + a[i] y[i-1]``: a scan of the maps ``y -> b + a y``."""

    def compose(earlier, later):
        (a0, b0), (a1, b1) = earlier, later
        return [a1 * a0, b1 + a1 * b0]

    return _doubling(ctx, [a, b], ctx.avals_in[0].shape[axis], axis, reverse, compose)[1]


tf_rules.add(p.linear_recurrence_p, in_carrier(_recurrence, accumulator))
