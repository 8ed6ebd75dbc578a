"""TensorFlow for contractions: stacks of matrices and one `tf.linalg.matmul`.

Sums of floats narrower than 32 bits are accumulated in float32, sums of integers wrap around in the dtype of
the result, sums of booleans are "or".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bedrax.core import dims, dtypes
from bedrax.jax2tf import types
from bedrax.jax2tf.carriers import cast, tensorflow, transpose, vector
from bedrax.jax2tf.lowering.conversions import convert, round_bits
from bedrax.jax2tf.lowering.shaping import reshape
from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives.contractions import (  # fmt: skip
    DotAlgorithm,
    DotAlgorithmPreset,
    dot_general_p,
    free_dims,
    product_dtype,
    ragged_dot_general_p,
    ragged_kind,
    scaled_dot_p,
)

_float32 = np.dtype(np.float32)


def matrix_product(x, y, dtypes_in, dtype: np.dtype, algorithm=None, transpose_a=False, transpose_b=False):
    """``x @ y`` over stacks of matrices as a tensor of our `dtype`; `dtypes_in` are our dtypes of the operands."""
    x, y, finish = prepare_product(x, y, dtypes_in, dtype, algorithm)
    return finish(tensorflow().linalg.matmul(x, y, transpose_a=transpose_a, transpose_b=transpose_b))


def prepare_product(x, y, dtypes_in, dtype: np.dtype, algorithm=None):
    """Operands in the dtype to compute in, and what makes our `dtype` of a sum of their products."""
    if isinstance(algorithm, DotAlgorithmPreset | DotAlgorithm):
        x, y, dtypes_in, sums = _with_algorithm(x, y, dtypes_in, algorithm)
        if sums is not None and sums != dtype:
            x, y, finish = prepare_product(x, y, dtypes_in, sums)
            return x, y, lambda out: convert(finish(out), dtype)
    tf = tensorflow()
    common = product_dtype(product_dtype(*dtypes_in), dtype)
    target = types.tf_dtype(dtype)
    if common == np.bool_:
        return tf.cast(x, tf.float32), tf.cast(y, tf.float32), lambda out: out > 0
    if dtypes.is_integer(common):
        wide = tf.int64 if dtypes.itemsize_bits(common) > 32 or common == np.uint32 else tf.int32
        return _word(x, wide), _word(y, wide), lambda out: _word(out, target)
    wide = types.tf_dtype(common if dtypes.itemsize_bits(common) >= 32 else _float32)

    def finish(out):
        return cast(out, target)

    return convert(x, np.dtype(wide.as_numpy_dtype)), convert(y, np.dtype(wide.as_numpy_dtype)), finish


def _word(x, wide):
    """Integers modulo a power of two in another integer dtype."""
    tf = tensorflow()
    if {x.dtype, wide} == {tf.int64, tf.uint64}:
        return tf.bitcast(x, wide)
    if x.dtype == tf.bool:
        return tf.cast(x, wide)
    return cast(x, wide)


def _with_algorithm(x, y, dtypes_in, algorithm):
    """Operands rounded as an algorithm says, their dtypes, and the dtype of the sums."""
    sums = algorithm.accumulation_type
    if isinstance(algorithm, DotAlgorithmPreset):
        kinds = ["F32"] * 2 if "_X" in algorithm.name else [algorithm.name.split("_")[0]] * 2
    else:
        split = algorithm.num_primitive_operations != 1  # several products emulate those of float32
        kinds = [_float32] * 2 if split else [algorithm.lhs_precision_type, algorithm.rhs_precision_type]
    rounded = [_round(v, d, kind) for v, d, kind in zip((x, y), dtypes_in, kinds, strict=True)]
    (x, x_dtype), (y, y_dtype) = rounded
    return x, y, (x_dtype, y_dtype), None if sums is None else np.dtype(sums)


def _round(x, dtype, kind):
    if kind in ("ANY", "DEFAULT"):
        return x, dtype
    if kind == "TF32":
        return round_bits(convert(x, _float32), 8, 10), _float32
    named = {"F16": np.float16, "BF16": dtypes.bfloat16, "F32": np.float32, "F64": np.float64}
    target = np.dtype(named[kind] if isinstance(kind, str) else kind)
    return convert(x, target), target


def _grouped(ctx, x, shape: Sequence, batch, rows, columns):
    """`x` as a stack of matrices ``(*batch, rows, columns)``, and whether they still have to be transposed."""
    natural = [*batch, *columns, *rows] == list(range(len(shape))) and len(rows) and len(columns)
    order = [*batch, *columns, *rows] if natural else [*batch, *rows, *columns]
    x = transpose(x, order)
    groups = (columns, rows) if natural else (rows, columns)
    if any(len(g) != 1 for g in groups):
        x = reshape(ctx, x, [*[shape[d] for d in batch], *[dims.size([shape[d] for d in g]) for g in groups]])
    return x, bool(natural)


def dot(ctx, lhs, rhs, shapes, dtypes_in, dimension_numbers, dtype, algorithm=None):
    """`lax.dot_general` of tensors with the given shapes and dtypes (ours); the result has our `dtype`."""
    (lc, rc), (lb, rb) = dimension_numbers
    left, right = shapes
    rows, columns = free_dims(len(left), lc, lb), free_dims(len(right), rc, rb)
    x, flip_x = _grouped(ctx, lhs, left, lb, rows, lc)
    y, flip_y = _grouped(ctx, rhs, right, rb, rc, columns)
    out = matrix_product(x, y, dtypes_in, dtype, algorithm, transpose_a=flip_x, transpose_b=flip_y)
    if len(rows) == 1 and len(columns) == 1:
        return out
    return reshape(ctx, out, [left[d] for d in (*lb, *rows)] + [right[d] for d in columns])


@tf_rules.rule(dot_general_p)
def _dot_general(
    ctx, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None
):
    a, b = ctx.avals_in
    return dot(
        ctx,
        lhs,
        rhs,
        (a.shape, b.shape),
        (a.dtype, b.dtype),
        dimension_numbers,
        ctx.aval_out.dtype,
        precision,
    )


@tf_rules.rule(scaled_dot_p)
def _scaled_dot(ctx, lhs, rhs, lhs_scale, rhs_scale, *, dimension_numbers, preferred_element_type):
    tf = tensorflow()
    dtype = np.dtype(preferred_element_type)

    def scaled(x, scale, aval, scale_aval):
        scale = convert(scale, dtype)
        for d, (n, blocks) in enumerate(zip(aval.shape, scale_aval.shape, strict=True)):
            if not dims.definitely_equal(n, blocks):
                scale = tf.repeat(scale, ctx.dim(n // blocks), axis=d)
        return convert(x, dtype) * scale

    a, b, sa, sb = ctx.avals_in
    x, y = scaled(lhs, lhs_scale, a, sa), scaled(rhs, rhs_scale, b, sb)
    return dot(ctx, x, y, (a.shape, b.shape), (dtype, dtype), dimension_numbers, ctx.aval_out.dtype)


# ---- ragged products -----------------------------------------------------------------------------


@tf_rules.rule(ragged_dot_general_p)
def _ragged_dot_general(
    ctx, lhs, rhs, group_sizes, *offset, ragged_dot_dimension_numbers, precision=None, preferred_element_type=None,
    out_sharding=None,
):  # fmt: skip
    """A product per group, of what a mask leaves of `lhs`."""
    tf = tensorflow()
    numbers = ragged_dot_dimension_numbers
    a, b, sizes = ctx.avals_in[:3]
    kind, prefix = ragged_kind(len(a.shape), numbers)
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers

    def product(x, y, y_shape, dimension_numbers):
        shapes = (a.shape, y_shape)
        return dot(ctx, x, y, shapes, (a.dtype, b.dtype), dimension_numbers, ctx.aval_out.dtype, precision)

    if kind == "batch":  # each position has its own product whatever group it is in
        return product(lhs, rhs, b.shape, numbers.dot_dimension_numbers)
    ragged = numbers.lhs_ragged_dimensions[0]
    groups = sizes.shape[-1]
    inside = _group_mask(ctx, group_sizes, groups, a.shape, prefix, ragged)
    if kind == "contracting":
        if not groups:
            return tf.zeros(ctx.shape(ctx.aval_out.shape), types.tf_dtype(ctx.aval_out.dtype))
        parts = []
        for i in range(groups):
            part = tf.where(inside[i], lhs, tf.zeros([], lhs.dtype))
            parts.append(product(part, rhs, b.shape, numbers.dot_dimension_numbers))
        return tf.stack(parts)
    (axis,) = numbers.rhs_group_dimensions
    drop = lambda ds: tuple(d - (d > axis) for d in ds)
    inner = ((lc, drop(rc)), (lb, drop(rb)))
    rest = [n for d, n in enumerate(b.shape) if d != axis]
    first = offset[0][0] if offset else 0
    rows = free_dims(len(a.shape), lc, lb)
    # One index per row: the group that it is in; -1 where there is none.
    order = [*lb, *rows]
    out = None
    for i in range(b.shape[axis]):
        group = first + i
        known = isinstance(group, int)
        if known and group >= groups:
            continue
        m = inside[group] if known else tf.gather(inside, tf.clip_by_value(group, 0, groups - 1))
        if not known:
            m = tf.logical_and(m, tf.logical_and(group >= 0, group < groups))
        m = transpose(m, [*order, *lc])  # the mask has size 1 along contracted dimensions
        m = tf.squeeze(m, list(range(len(order), len(order) + len(lc))))
        m = m[(...,) + (None,) * (len(ctx.aval_out.shape) - len(order))]
        part = product(lhs, tf.gather(rhs, i, axis=axis), rest, inner)
        out = tf.where(m, part, tf.zeros([], part.dtype) if out is None else out)
    return tf.zeros(ctx.shape(ctx.aval_out.shape), types.tf_dtype(ctx.aval_out.dtype)) if out is None else out


def _group_mask(ctx, group_sizes, groups: int, shape, prefix, ragged: int):
    """``mask[g]``, of a shape that broadcasts to `shape`: which positions are in group ``g``."""
    tf = tensorflow()
    ends = tf.cumsum(cast(group_sizes, tf.int64), -1)
    starts = ends - cast(group_sizes, tf.int64)
    position = tf.range(tf.cast(ctx.dim(shape[ragged]), tf.int64))
    inside = tf.logical_and(
        starts[..., None] <= position, position < ends[..., None]
    )  # prefix, group, position
    rank = inside.shape.rank
    if rank == 2:
        place = [ctx.dim(shape[d]) if d == ragged else 1 for d in range(len(shape))]
        return tf.reshape(inside, vector([groups, *place]))
    axes = [*prefix, ragged]
    order = sorted(range(len(axes)), key=axes.__getitem__)
    inside = transpose(inside, [rank - 2, *[i if i < rank - 2 else rank - 1 for i in order]])
    place = [ctx.dim(shape[d]) if d in axes else 1 for d in range(len(shape))]
    return tf.reshape(inside, vector([groups, *place]))
