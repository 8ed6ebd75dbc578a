"""TensorFlow for contractions: stacks of matrices and one `tf.linalg.matmul`.

Sums of floats narrower than 32 bits are accumulated in float32, sums of integers wrap around in the dtype of
the result, sums of booleans are "or".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.core import dims, dtypes
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.jax2tf.carriers import cast, storage
from bedrax.jax2tf.lowering.conversions import convert, round_bits
from bedrax.jax2tf.lowering.shaping import reshape
from bedrax.jax2tf.tables import tf_rules
from bedrax.jax2tf.tensors import transpose
from bedrax.lax.primitives import contractions as p
from bedrax.tf import tensorflow as tf
from bedrax.tf import types

_float32 = np.dtype(np.float32)


def matrix_product(
    x: ArrayLike,
    y: ArrayLike,
    dtypes_in: Any,
    dtype: np.dtype,
    algorithm: Any = None,
    transpose_a: Any = False,
    transpose_b: Any = False,
) -> Any:
    """``x @ y`` over stacks of matrices as a tensor of our `dtype`; `dtypes_in` are our dtypes of the operands."""
    x, y, finish = prepare_product(x, y, dtypes_in, dtype, algorithm)
    return finish(tf.linalg.matmul(x, y, transpose_a=transpose_a, transpose_b=transpose_b))


def prepare_product(x: ArrayLike, y: ArrayLike, dtypes_in: Any, dtype: np.dtype, algorithm: Any = None) -> Any:
    """Operands in the dtype of the computation, and the function from a sum of products to our `dtype`."""
    if isinstance(algorithm, p.DotAlgorithmPreset | p.DotAlgorithm):
        x, y, dtypes_in, sums = _with_algorithm(x, y, dtypes_in, algorithm)
        if sums is not None and sums != dtype:
            x, y, finish = prepare_product(x, y, dtypes_in, sums)
            return x, y, lambda out: convert(finish(out), dtype)
    common = p.product_dtype(p.product_dtype(*dtypes_in), dtype)
    target = types.tf_dtype(dtype)
    if common == np.bool_:
        return tf.cast(x, tf.float32), tf.cast(y, tf.float32), lambda out: out > 0
    if dtypes.is_integer(common):
        wide = tf.int64 if dtypes.itemsize_bits(common) > 32 or common == np.uint32 else tf.int32
        return _word(x, wide), _word(y, wide), lambda out: _word(out, target)
    wide = np.dtype(types.tf_dtype(common if dtypes.itemsize_bits(common) >= 32 else _float32).as_numpy_dtype)
    return convert(x, wide), convert(y, wide), lambda out: cast(out, target)


def _word(x, wide):
    """Integers modulo a power of two in another integer dtype."""
    if {x.dtype, wide} == {tf.int64, tf.uint64}:
        return tf.bitcast(x, wide)
    if x.dtype == tf.bool:
        return tf.cast(x, wide)
    return cast(x, wide)


def _with_algorithm(x, y, dtypes_in, algorithm):
    """Operands rounded according to an algorithm, their dtypes, and the dtype of the sums."""
    sums = algorithm.accumulation_type
    if isinstance(algorithm, p.DotAlgorithmPreset):
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
    """`x` as a stack of matrices ``(*batch, rows, columns)``, and whether they must still be transposed."""
    natural = [*batch, *columns, *rows] == list(range(len(shape))) and len(rows) and len(columns)
    order = [*batch, *columns, *rows] if natural else [*batch, *rows, *columns]
    x = transpose(x, order)
    groups = (columns, rows) if natural else (rows, columns)
    if any(len(g) != 1 for g in groups):
        x = reshape(ctx, x, [*[shape[d] for d in batch], *[dims.size([shape[d] for d in g]) for g in groups]])
    return x, bool(natural)


def dot(
    ctx: Any,
    lhs: Any,
    rhs: Any,
    shapes: Any,
    dtypes_in: Any,
    dimension_numbers: Any,
    dtype: DTypeLike,
    algorithm: Any = None,
) -> Any:
    """`lax.dot_general` of tensors with the given shapes and dtypes (ours); the result has our `dtype`."""
    (lc, rc), (lb, rb) = dimension_numbers
    left, right = shapes
    lhs, rhs = (cast(x, storage(x.dtype)) for x in (lhs, rhs))  # TensorFlow does not transpose narrow dtypes
    rows, columns = p.free_dims(len(left), lc, lb), p.free_dims(len(right), rc, rb)
    if len(rows) > 1 and not lb and tuple(lc) == (len(left) - 1,) and len(right) == 2:
        # A layer applied along the last axis: `BatchMatMulV2` supports this, and TFLite makes one operation of it.
        return matrix_product(lhs, rhs, dtypes_in, dtype, algorithm, transpose_b=tuple(rc) == (1,))
    x, flip_x = _grouped(ctx, lhs, left, lb, rows, lc)
    y, flip_y = _grouped(ctx, rhs, right, rb, rc, columns)
    out = matrix_product(x, y, dtypes_in, dtype, algorithm, transpose_a=flip_x, transpose_b=flip_y)
    if len(rows) == 1 and len(columns) == 1:
        return out
    return reshape(ctx, out, [left[d] for d in (*lb, *rows)] + [right[d] for d in columns])


@tf_rules.rule(p.dot_general_p)
def _dot_general(ctx, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None):
    a, b = ctx.avals_in
    shapes, dtypes_in = (a.shape, b.shape), (a.dtype, b.dtype)
    return dot(ctx, lhs, rhs, shapes, dtypes_in, dimension_numbers, ctx.aval_out.dtype, precision)
