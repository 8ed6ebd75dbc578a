"""NumPy evaluation of contractions: operands as stacks of matrices, one `matmul`.

Sums of floats narrower than 32 bits are accumulated in float32. Sums of integers wrap around in
the dtype of the result. Sums of booleans are "or".
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from bedrax.core import dtypes
from bedrax.core.quiet import quietly
from bedrax.lax.primitives import contractions as p
from bedrax.numpy_backend.numbers import convert
from bedrax.numpy_backend.tables import numpy_rules, source_rules

_float32 = np.dtype(np.float32)
_float64 = np.dtype(np.float64)
_native = frozenset({_float32, _float64, np.dtype(np.complex64), np.dtype(np.complex128)})


def matmul(x: np.ndarray, y: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return ``x @ y`` over stacks of matrices, accumulated as in the docstring of this module, as `dtype`."""
    common = p.product_dtype(p.product_dtype(x.dtype, y.dtype), dtype)
    if common == np.bool_:
        return np.matmul(x.astype(_float32), y.astype(_float32)) > 0
    if common in dtypes.integer_dtypes:
        if _width_bits(x) + _width_bits(y) + math.log2(x.shape[-1] or 1) <= 52:
            # Exact in float64, whose products are much faster than NumPy's of integers.
            return np.matmul(x.astype(_float64), y.astype(_float64)).astype(np.int64).astype(dtype)
        wide = np.uint64 if common == np.uint64 else np.int64
        if dtypes.itemsize_bits(common) == 32:
            wide = common
        with np.errstate(over="ignore"):
            return np.matmul(x.astype(wide), y.astype(wide)).astype(dtype)
    if dtypes.itemsize_bits(common) < 32:
        common = _float32
    out = np.matmul(x.astype(common, copy=False), y.astype(common, copy=False))
    return convert(out, dtype)


def _width_bits(x: np.ndarray) -> int:
    return 1 if x.dtype == np.bool_ else dtypes.itemsize_bits(x.dtype)


def _round(x: np.ndarray, kind: str) -> np.ndarray:
    """Round `x` to the dtype that `kind`, a part of the name of an algorithm, names."""
    if kind == "TF32":  # float32 with 10 bits of mantissa, ties to even
        bits = x.astype(_float32).view(np.uint32)
        rounded = (bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)
        return np.where(np.isfinite(x.astype(_float32)), rounded, bits).astype(np.uint32).view(_float32)
    if kind == "ANY":
        return x
    return x.astype({"F16": np.float16, "BF16": dtypes.bfloat16, "F32": np.float32, "F64": np.float64}[kind])


def multiply_with(x: np.ndarray, y: np.ndarray, dtype: np.dtype, algorithm: Any) -> np.ndarray:
    """Compute `matmul` with the arithmetic of a `DotAlgorithm` or a preset."""
    if not isinstance(algorithm, (p.DotAlgorithmPreset, p.DotAlgorithm)):
        return matmul(x, y, dtype)
    if isinstance(algorithm, p.DotAlgorithmPreset):
        accumulation = algorithm.accumulation_type
        if "_X" in algorithm.name:  # several products emulate those of float32
            x, y = x.astype(_float32), y.astype(_float32)
        else:
            kind = algorithm.name.split("_")[0]
            x, y = _round(x, kind), _round(y, kind)
    else:
        accumulation = algorithm.accumulation_type
        split = algorithm.num_primitive_operations != 1
        x = x.astype(_float32 if split else algorithm.lhs_precision_type)
        y = y.astype(_float32 if split else algorithm.rhs_precision_type)
    return convert(matmul(x, y, dtype if accumulation is None else np.dtype(accumulation)), dtype)


@functools.lru_cache(4096)
def _matrices(lhs: tuple, rhs: tuple, dimension_numbers: tuple) -> tuple:
    """Return the transpositions and shapes that make operands stacks of matrices ``(batch, rows, columns)``.

    Returns:
      (order and shape of lhs, order and shape of rhs, shape of the result); an order is None if nothing moves.
    """
    (lc, rc), (lb, rb) = dimension_numbers
    rows, columns = p.free_dims(len(lhs), lc, lb), p.free_dims(len(rhs), rc, rb)

    def stack(shape, *groups):
        order = [d for group in groups for d in group]
        sizes = [math.prod([shape[d] for d in group]) for group in groups]
        return (None if order == sorted(order) else order), tuple(sizes if groups[0] else sizes[1:])

    result = (*[lhs[d] for d in (*lb, *rows)], *[rhs[d] for d in columns])
    return *stack(lhs, lb, rows, lc), *stack(rhs, rb, rc, columns), result


@numpy_rules.rule(p.dot_general_p)
def dot_general(
    lhs: np.ndarray[Any, Any],
    rhs: np.ndarray[Any, Any],
    *,
    dimension_numbers: tuple[tuple[Any, ...], ...],
    precision: Any = None,
    preferred_element_type: np.dtype[Any] | None = None,
) -> np.ndarray[Any, Any]:
    order_x, shape_x, order_y, shape_y, result = _matrices(lhs.shape, rhs.shape, dimension_numbers)
    x = (lhs if order_x is None else lhs.transpose(order_x)).reshape(shape_x)
    y = (rhs if order_y is None else rhs.transpose(order_y)).reshape(shape_y)
    dtype = preferred_element_type or p.product_dtype(lhs.dtype, rhs.dtype)
    if precision is None and x.dtype == dtype == y.dtype and dtype in _native:
        return quietly(np.matmul, x, y).reshape(result)
    return quietly(multiply_with, x, y, dtype, precision).reshape(result)


@source_rules.rule(p.dot_general_p)
def _dot_general_source(write, eqn, lhs, rhs):
    x, y, out = eqn.invars[0].aval, eqn.invars[1].aval, eqn.outvars[0].aval
    if eqn.params["precision"] is not None or not x.dtype == y.dtype == out.dtype or out.dtype not in _native:
        return None
    order_x, shape_x, order_y, shape_y, result = _matrices(x.shape, y.shape, eqn.params["dimension_numbers"])

    def matrices(text, aval, order, shape):
        moved = f"{text}.transpose({tuple(order)})" if order else text
        now = tuple([aval.shape[d] for d in order]) if order else aval.shape
        return moved if now == shape else f"{moved}.reshape({shape})"

    product = f"{matrices(lhs, x, order_x, shape_x)} @ {matrices(rhs, y, order_y, shape_y)}"
    return product if result == (*shape_x[:-1], shape_y[-1]) else f"({product}).reshape({result})"


@numpy_rules.rule(p.ragged_dot_general_p)
def _ragged_dot_general(
    lhs, rhs, group_sizes, *offset, ragged_dot_dimension_numbers, precision=None, preferred_element_type=None
):
    numbers = ragged_dot_dimension_numbers
    kind, prefix = p.ragged_kind(lhs.ndim, numbers)
    (lc, rc), (lb, rb) = dimensions = numbers.dot_dimension_numbers
    options = dict(precision=precision, preferred_element_type=preferred_element_type)
    if kind == "batch":  # each position has its own product whatever group it is in
        return dot_general(lhs, rhs, dimension_numbers=dimensions, **options)
    mask = group_mask(group_sizes, lhs.shape, prefix, numbers.lhs_ragged_dimensions[0])
    if kind == "contracting":
        parts = [
            dot_general(np.where(m, lhs, lhs.dtype.type(0)), rhs, dimension_numbers=dimensions, **options) for m in mask
        ]
        if parts:
            return np.stack(parts)
        out = dot_general(lhs, rhs, dimension_numbers=dimensions, **options)
        return np.zeros((0, *out.shape), out.dtype)
    (axis,) = numbers.rhs_group_dimensions
    drop = lambda ds: tuple(d - (d > axis) for d in ds)
    dimensions = ((lc, drop(rc)), (lb, drop(rb)))
    first = int(offset[0][0]) if offset else 0
    out = dot_general(
        np.zeros_like(lhs), np.zeros(np.delete(rhs.shape, axis), rhs.dtype), dimension_numbers=dimensions, **options
    )
    rows = p.free_dims(lhs.ndim, lc, lb)
    for i in range(rhs.shape[axis]):
        if 0 <= first + i < len(mask):
            m = mask[first + i]
            part = dot_general(lhs, rhs.take(i, axis), dimension_numbers=dimensions, **options)
            m = np.broadcast_to(m, lhs.shape).transpose(*lb, *rows, *lc)[(..., *[0] * len(lc))] if lhs.size else m
            out = np.where(m.reshape(m.shape + (1,) * (out.ndim - m.ndim)), part, out) if lhs.size else out
    return out


def group_mask(group_sizes: np.ndarray, shape: tuple[Any, ...], prefix: tuple[Any, ...], ragged: int) -> np.ndarray:
    """Return ``mask[g]``, true at the positions in group ``g``; its shape broadcasts to `shape`."""
    ends = np.cumsum(group_sizes.astype(np.int64), axis=-1)
    starts = ends - group_sizes
    position = np.arange(shape[ragged])
    if ends.ndim == 1:
        target = [shape[ragged] if d == ragged else 1 for d in range(len(shape))]
        inside = (starts[:, None] <= position) & (position < ends[:, None])
        return inside.reshape(len(ends), *target)
    inside = (starts[..., None] <= position) & (position < ends[..., None])  # prefix, group, position
    inside = np.moveaxis(inside, -2, 0)
    order = np.argsort([*prefix, ragged])
    target = [shape[d] if d in prefix or d == ragged else 1 for d in range(len(shape))]
    return inside.transpose(0, *(order + 1)).reshape(inside.shape[0], *target)


@numpy_rules.rule(p.scaled_dot_p)
def _scaled_dot(lhs, rhs, lhs_scale, rhs_scale, *, dimension_numbers, preferred_element_type):
    def scaled(x, scale):
        for d in range(x.ndim):
            if scale.shape[d] != x.shape[d]:
                scale = np.repeat(scale, x.shape[d] // scale.shape[d], axis=d)
        return x.astype(preferred_element_type) * scale.astype(preferred_element_type)

    return dot_general(
        scaled(lhs, lhs_scale),
        scaled(rhs, rhs_scale),
        dimension_numbers=dimension_numbers,
        preferred_element_type=preferred_element_type,
    )
