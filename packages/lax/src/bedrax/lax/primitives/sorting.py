"""Sorting: `sort` (of several arrays by some of them), the k largest, and their approximation.

Order of `sort`: numbers by value with -0 equal to 0, then NaN; complex numbers by real, then
imaginary part. Order of `top_k`: the total order of IEEE 754 (a NaN with sign is below -inf).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from bedrax.core import dims, dtypes, positions
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.defining import named
from bedrax.core.tables import pure_shapes
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike, T
from bedrax.lax.elementwise_kinds import check_numbers
from bedrax.lax.primitives.indexing import GatherDimensionNumbers, gather
from bedrax.lax.primitives.shaping import broadcasted_iota, canonical_axis, expand_dims, like, slice_in_dim

pure_shapes.add(__name__)

sort_p: Final = Primitive("sort", "sorting", multiple_results=True)
top_k_p: Final = Primitive("top_k", "sorting", multiple_results=True)
approx_top_k_p: Final = Primitive("approx_top_k", "sorting", multiple_results=True)

_INDEX = np.dtype(np.int32)


@sort_p.abstract
def _sort_shape(*operands, dimension, is_stable, num_keys):
    _check_one_shape(operands)
    for a in operands:
        if dtypes.is_extended(a.dtype):
            raise TypeError(f"sort: elements of dtype {a.dtype} have no order")
    return list(operands)


def _check_one_shape(operands: Sequence[Any]) -> None:
    if any(not dims.same_shape(a.shape, operands[0].shape) for a in operands):
        raise TypeError(f"sort: the operands have one shape, got {', '.join(str(a.shape) for a in operands)}")


def sort(operand: T, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> T:
    """Sort along an axis, in ascending order.

    Args:
      operand: an array; or a sequence of arrays of one shape, which are all reordered in the same way.
      dimension: the axis; negative ones count from the end.
      is_stable: keep the order of equal elements.
      num_keys: the number of arrays that are compared, the first one first.

    Returns:
      An array, or a tuple of arrays.

    Examples:

      >>> lax.sort(jnp.array([[3, 1], [0, 2]]), dimension=1)
      Array([[1, 3],
             [0, 2]], dtype=int32)
      >>> lax.sort((jnp.array([3, 1, 2]), jnp.array([30, 10, 20])), num_keys=1)
      (Array([1, 2, 3], dtype=int32), Array([10, 20, 30], dtype=int32))
    """
    several = isinstance(operand, Sequence)
    operands = tuple(operand) if several else (operand,)
    if not operands:
        raise TypeError("sort: at least one operand is needed, got none")
    num_keys = dims.integer(num_keys, "sort: num_keys")
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"sort: num_keys={num_keys} is not in 1..{len(operands)}, the number of operands")
    dimension = canonical_axis(dimension, len(aval_of(operands[0]).shape))
    options = {"dimension": dimension, "is_stable": bool(is_stable), "num_keys": num_keys}
    if any(dtypes.is_extended(aval_of(x).dtype) for x in operands[num_keys:]):
        out = _sort_around_extended(operands, **options)
    else:
        out = sort_p.bind(*operands, **options)
    return tuple(out) if several else out[0]


def _sort_around_extended(operands: tuple[Any, ...], *, dimension: int, num_keys: int, **options: Any) -> list[Any]:
    """`sort` with operands of extended dtypes that are not compared: the order of the others moves their elements."""
    avals = [aval_of(x) for x in operands]
    _check_one_shape(avals)
    shape = avals[0].shape
    extended = [i >= num_keys and dtypes.is_extended(a.dtype) for i, a in enumerate(avals)]
    numbers = [x for x, is_extended in zip(operands, extended, strict=True) if not is_extended]
    with positions.scope(shape[dimension]):
        index = broadcasted_iota(positions.dtype_for(shape[dimension]), shape, dimension)
        *out, order = sort_p.bind(*numbers, index, dimension=dimension, num_keys=num_keys, **options)
        rest = iter(out)
        return [take_along(x, order, dimension) if e else next(rest) for x, e in zip(operands, extended, strict=True)]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort an array along one axis, and reorder a second one in the same way.

    Args:
      keys: array to sort.
      values: array of the shape of `keys`.
      dimension: the axis.
      is_stable: equal keys keep their order.

    Returns:
      A pair: the sorted keys, and the values in the same order.

    Examples:

      >>> keys, values = lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([30, 10, 20]))
      >>> values
      Array([10, 20, 30], dtype=int32)
    """
    keys, values = sort((keys, values), dimension, is_stable, num_keys=1)
    return keys, values


def _check_int32_positions(name: str, shape: Any, axis: int) -> None:
    if positions.are_wide(shape[axis]):
        raise ValueError(
            f"{name}: positions are int32, which cannot count along axis {axis} of shape {shape}; sort the array with"
            " its positions in int64, or split the axis"
        )


@top_k_p.abstract
def _top_k_shape(operand, *, k, axis, is_stable=True):
    check_numbers("top_k", operand)
    shape = operand.shape
    if dtypes.issubdtype(operand.dtype, np.complexfloating):
        raise ValueError(f"top_k takes real numbers, got {operand.dtype}")
    if dims.is_constant_dim(k) and k < 0:
        raise ValueError(f"top_k: k is not negative, got {k}")
    if not dims.at_least(shape[axis], k):
        raise ValueError(f"top_k: k={k} is more than axis {axis} of shape {shape} holds")
    _check_int32_positions("top_k", shape, axis)
    values = like(operand, (*shape[:axis], k, *shape[axis + 1 :]))
    return [values, values.update(dtype=_INDEX, weak_type=False)]


def top_k(operand: ArrayLike, k: int, *, axis: int = -1, is_stable: bool = True) -> list[Array]:
    """The `k` largest elements along an axis, in descending order, and their int32 indices.

    Args:
      operand: array of real numbers or booleans.
      k: the number of elements; not negative, and at most the size of the axis.
      axis: along which axis; negative ones count from the end.
      is_stable: of equal elements the one with the lower index comes first. False: in any order.

    Returns:
      ``[values, indices]``, of the shape of `operand`, with length `k` along the axis.

    Raises:
      ValueError: `operand` is complex, or `k` is out of range.

    Examples:

      >>> values, positions = lax.top_k(jnp.array([3., 9., 7., 1.]), 2)
      >>> values
      Array([9., 7.], dtype=float32)
      >>> positions
      Array([1, 2], dtype=int32)
    """
    axis = canonical_axis(axis, len(aval_of(operand).shape))
    return list(top_k_p.bind(operand, k=dims.canonical_dim(k), axis=axis, is_stable=bool(is_stable)))


def approx_output_size(n: int, rank: int, k: int, recall_target: float, override: int, aggregate: bool) -> int:
    """The number of candidates that an approximate search keeps (Chern et al. 2022, "TPU-KNN", section 5).

    The input is cut into tiles of 128 lanes (1024 elements for rank 1). ``2**r`` of them are
    reduced to one. Among L bins the expected recall is at least ``(1 - 1/L)**(k - 1)``, so that
    ``L >= (1 - k) / log(recall_target)`` bins suffice.
    """
    if aggregate:
        return k
    tile = 1024 if rank == 1 else 128
    if n <= tile:
        return n
    if k == 1:
        return tile
    if recall_target >= 1:
        return n
    bins = min(max(int((1 - k) / math.log(recall_target)), tile), n)
    reduction = ((override if override >= 0 else n) // bins).bit_length() - 1
    if reduction <= 0:
        return n
    tiles = (n + tile - 1) // tile
    return tile * ((tiles + (1 << reduction) - 1) >> reduction)


@approx_top_k_p.abstract
def _approx_top_k_shape(
    operand, *, k, reduction_dimension, recall_target, is_max_k, reduction_input_size_override, aggregate_to_topk
):
    shape = operand.shape
    if not shape:
        raise TypeError("approx_top_k: a scalar has no axis to search")
    if not dtypes.issubdtype(operand.dtype, np.floating):
        raise ValueError(f"approx_top_k takes floats, got {operand.dtype}")
    if k <= 0:
        raise ValueError(f"approx_top_k: k is positive, got {k}")
    if not 0 < recall_target <= 1:
        raise ValueError(f"approx_top_k: recall_target is in (0, 1], got {recall_target}")
    axis = canonical_axis(reduction_dimension, len(shape))
    n = shape[axis]
    _check_int32_positions("approx_top_k", shape, axis)
    if not dims.at_least(n, k):
        raise ValueError(f"approx_top_k: k={k} is more than the axis holds, {n}")
    if reduction_input_size_override >= 0 and reduction_input_size_override < n:
        raise ValueError(f"approx_top_k: {reduction_input_size_override=} is less than the axis, {n}")
    if not aggregate_to_topk and not dims.is_constant_dim(n):
        raise ValueError(f"approx_top_k without aggregation needs a known size, axis {axis} of {shape} is symbolic")
    size = approx_output_size(n, len(shape), k, recall_target, reduction_input_size_override, aggregate_to_topk)
    values = like(operand, (*shape[:axis], size, *shape[axis + 1 :]))
    return [values, values.update(dtype=_INDEX, weak_type=False)]


def _approximate(name: str, which: str, order: str, is_max: bool, example: str) -> Callable[..., list[Array]]:
    def function(
        operand: ArrayLike,
        k: int,
        reduction_dimension: int = -1,
        recall_target: float = 0.95,
        reduction_input_size_override: int = -1,
        aggregate_to_topk: bool = True,
    ) -> list[Array]:
        return list(
            approx_top_k_p.bind(
                operand,
                k=dims.canonical_dim(k),
                reduction_dimension=dims.integer(reduction_dimension, "reduction_dimension"),
                recall_target=float(recall_target),
                is_max_k=is_max,
                reduction_input_size_override=dims.integer(
                    reduction_input_size_override, "reduction_input_size_override"
                ),
                aggregate_to_topk=bool(aggregate_to_topk),
            )
        )

    text = f"""The `k` {which} elements along an axis and their int32 indices; may miss some, for speed.

    Bedrax computes them exactly on every platform, which meets any recall target.

    Args:
      operand: array of floating-point numbers.
      k: how many.
      reduction_dimension: along which axis.
      recall_target: the expected fraction of the true ones that the result holds.
      reduction_input_size_override: where the operand is one device's part of a larger axis, the
        size of that; the candidates to keep are counted for it.
      aggregate_to_topk: whether to return `k` elements; otherwise all candidates, the {which} `k` first.

    Returns:
      ``[values in {order} order, indices]``.
    """
    return named(function, name, __name__, text, example)


approx_max_k: Final = _approximate(
    "approx_max_k",
    "largest",
    "descending",
    True,
    example="""
    >>> values, positions = lax.approx_max_k(jnp.array([1., 9., 5., 7.]), k=2)
    >>> values
    Array([9., 7.], dtype=float32)
    >>> positions
    Array([1, 3], dtype=int32)
    """,
)
approx_min_k: Final = _approximate(
    "approx_min_k",
    "smallest",
    "ascending",
    False,
    example="""
    >>> values, positions = lax.approx_min_k(jnp.array([1., 9., 5., 7.]), k=2)
    >>> values
    Array([1., 5.], dtype=float32)
    """,
)


def take_along(x: Any, indices: Array, axis: int, unique: bool = True) -> Any:
    """``x`` at ``indices`` (in bounds) along one axis; the other axes are aligned.

    Args:
      x, indices: arrays of shapes that are equal but for `axis`, along which there are not more indices than elements.
      unique: no index occurs twice in a row.
    """
    shape = aval_of(x).shape
    if dims.definitely_equal(dims.size(shape), 0):  # a gather takes slices of length 1
        return slice_in_dim(x, 0, aval_of(indices).shape[axis], axis=axis)
    rank = len(shape)
    others = tuple([i for i in range(rank) if i != axis])
    numbers = GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        operand_batching_dims=others,
        start_indices_batching_dims=others,
    )
    return gather(
        x, expand_dims(indices, (rank,)), numbers, (1,) * rank, unique_indices=unique, mode="promise_in_bounds"
    )


__all__ = ["approx_max_k", "approx_min_k", "approx_top_k_p", "sort", "sort_key_val", "sort_p", "top_k", "top_k_p"]
