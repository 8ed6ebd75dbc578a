"""TensorFlow for reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bedrax.core import dims, dtypes
from bedrax.core.typing import ArrayLike
from bedrax.jax2tf.carriers import accumulator, carrier, cast, in_carrier
from bedrax.jax2tf.lowering.shaping import reshape
from bedrax.jax2tf.tables import tf_rules
from bedrax.jax2tf.tensors import highest, lowest, np_dtype, scalar, transpose
from bedrax.lax.primitives import reductions as p
from bedrax.tf import tensorflow as tf
from bedrax.tf import types

if TYPE_CHECKING:
    from bedrax.core.ir import Jaxpr


def _arithmetic(prim, name: str) -> None:
    def rule(ctx, x, *, axes):
        return getattr(tf, name)(x, ctx.integers(axes)) if axes else x

    tf_rules.add(prim, in_carrier(rule, accumulator), f"tf.{name}")


_arithmetic(p.reduce_sum_p, "reduce_sum")
_arithmetic(p.reduce_prod_p, "reduce_prod")


def reduce_extreme(x: ArrayLike, axes: Sequence[int], largest: bool) -> Any:
    """The largest (smallest) elements along axes; complex numbers in lexicographic order.

    nan if an element is nan, with TensorFlow's kernels; its XLA ignores nan.
    """
    reduce = tf.reduce_max if largest else tf.reduce_min
    if x.dtype == tf.bool:
        return (tf.reduce_any if largest else tf.reduce_all)(x, axes)
    if not x.dtype.is_complex:
        return reduce(x, axes)
    # In lexicographic order: the extreme real part, and the extreme imaginary part among those that have it.
    real, imag = tf.math.real(x), tf.math.imag(x)
    best = reduce(real, axes, keepdims=True)
    worst = scalar(lowest(np_dtype(real)) if largest else highest(np_dtype(real)), real)
    imag = reduce(tf.where(tf.equal(real, best), imag, worst), axes)
    nan = tf.reduce_any(tf.not_equal(x, x), axes)
    # A result with the identity as its real part is the identity: no element comes after it.
    best = tf.squeeze(best, axes)
    imag = tf.where(tf.equal(best, worst), tf.zeros_like(imag), imag)
    out = tf.complex(best, imag)
    return tf.where(nan, scalar(complex("nan+nanj"), x), out)


def _extreme(prim, largest: bool) -> None:
    def rule(ctx, x, *, axes):
        return reduce_extreme(x, list(axes), largest) if axes else x

    tf_rules.add(prim, in_carrier(rule))


_extreme(p.reduce_max_p, True)
_extreme(p.reduce_min_p, False)


def _bitwise(prim, reduce) -> None:
    @tf_rules.rule(prim)
    def rule(ctx, x, *, axes):
        if not axes:
            return x
        axes = list(axes)
        if x.dtype == tf.bool:
            return reduce(x, axes)
        dtype, width = x.dtype, dtypes.itemsize_bits(ctx.avals_in[0].dtype)
        # TensorFlow reduces no bit operations: reduce each bit as a boolean.
        word = tf.int64 if width == 64 else tf.int32
        x = tf.bitcast(x, word) if width == 64 and dtype != word else cast(x, word)
        places = tf.range(width, dtype=word)
        one = tf.constant(1, word)
        bits = tf.not_equal(tf.bitwise.bitwise_and(tf.bitwise.right_shift(x[..., None], places), one), 0)
        whole = tf.reduce_sum(tf.bitwise.left_shift(tf.cast(reduce(bits, axes), word), places), -1)
        return tf.bitcast(whole, dtype) if width == 64 and dtype != word else cast(whole, dtype)


_bitwise(p.reduce_and_p, lambda x, axes: tf.reduce_all(x, axes))
_bitwise(p.reduce_or_p, lambda x, axes: tf.reduce_any(x, axes))
_bitwise(p.reduce_xor_p, lambda x, axes: tf.equal(tf.reduce_sum(tf.cast(x, tf.int32), axes) % 2, 1))


def _arg(prim, name: str, fill) -> None:
    @tf_rules.rule(prim)
    def rule(ctx, x, *, axes, index_dtype):
        (axis,) = axes
        target = types.tf_dtype(index_dtype)
        find = getattr(tf, name)
        width = target if target in (tf.int32, tf.int64) else tf.int64
        x = cast(x, tf.int32 if x.dtype == tf.bool else carrier(x.dtype))
        if not x.dtype.is_floating:
            return cast(find(x, axis, output_type=width), target)
        # The first nan, if there is one; TensorFlow skips nan. If all are infinite, the first.
        nan = tf.not_equal(x, x)
        first_nan = tf.argmax(tf.cast(nan, tf.int32), axis, output_type=width)
        filled = tf.where(nan, scalar(fill(np_dtype(x)), x), x)
        found = tf.where(tf.reduce_any(nan, axis), first_nan, find(filled, axis, output_type=width))
        return cast(found, target)


_arg(p.argmax_p, "argmax", lowest)
_arg(p.argmin_p, "argmin", highest)


# ---- any combiner --------------------------------------------------------------------------------


def combine_arrays(ctx: Any, jaxpr: Jaxpr) -> Any:
    """A jaxpr of scalars as a function of equally shaped tensors.

    Programs of elementwise primitives run on whole tensors; others are mapped over the elements.
    """
    if all(eqn.primitive.family in ("elementwise", "special") for eqn in jaxpr.eqns):

        def whole(*tensors):
            like = tf.shape(tensors[0])
            out = ctx.run(jaxpr, *tensors)
            return [y if y.shape.rank == tensors[0].shape.rank else tf.broadcast_to(y, like) for y in out]

        return whole

    def one_by_one(*tensors):
        like = tf.shape(tensors[0])
        flat = [tf.reshape(x, [-1]) for x in tensors]
        specs = [tf.TensorSpec([], types.tf_dtype(a.dtype)) for a in jaxpr.out_avals]
        out = tf.map_fn(lambda xs: ctx.inner().run(jaxpr, *xs), flat, fn_output_signature=specs)
        return [tf.reshape(y, like) for y in out]

    return one_by_one


@tf_rules.rule(p.reduce_p)
def _reduce(ctx, *args, dimensions, jaxpr):
    """Combine neighbours until one element of each row is left, and combine that with the initial value."""
    half = len(args) // 2
    operands, inits = list(args[:half]), args[half:]
    shape = ctx.avals_in[0].shape
    kept = [d for d in range(len(shape)) if d not in dimensions]
    size = dims.size([shape[d] for d in dimensions])
    rows = [size, *[shape[d] for d in kept]]
    combine = combine_arrays(ctx, jaxpr)
    xs = [reshape(ctx, transpose(x, [*dimensions, *kept]), rows) for x in operands]
    outer = ctx.shape([shape[d] for d in kept])
    start = [tf.broadcast_to(init, outer) for init in inits]
    n = ctx.dim(size)

    def halve(n, xs):
        even = n - n % 2
        pairs = combine(*[x[0:even:2] for x in xs], *[x[1:even:2] for x in xs])
        return [tf.concat([y, x[even:]], 0) for x, y in zip(xs, pairs, strict=True)]

    if isinstance(n, int):
        if n == 0:
            return start
        while n > 1:
            xs, n = halve(n, xs), n - n // 2
        return combine(*start, *[x[0] for x in xs])
    invariants = [tf.TensorShape([None, *x.shape[1:]]) for x in xs]
    _, *xs = tf.while_loop(
        lambda n, *_: n > 1,
        lambda n, *xs: [n - n // 2, *halve(n, xs)],
        [n, *xs],
        shape_invariants=[tf.TensorShape([]), *invariants],
    )
    # A dimension variable is at least 1, but a size like b - 1 may be 0.
    return tf.cond(tf.equal(n, 0), lambda: start, lambda: combine(*start, *[x[0] for x in xs]))
