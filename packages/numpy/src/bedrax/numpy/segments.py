"""Reductions over segments: the elements that share a number are reduced together (`jax.ops`)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from bedrax import lax
from bedrax import numpy as jnp
from bedrax.core import dims, dtypes
from bedrax.core.defining import named
from bedrax.core.one_program import one_program
from bedrax.core.public import public
from bedrax.numpy.arguments import arrays, concrete_int


def _lowest(dtype):
    if dtypes.is_bool(dtype):
        return False
    return -np.inf if dtypes.is_inexact(dtype) else dtypes.iinfo(dtype).min


def _highest(dtype):
    if dtypes.is_bool(dtype):
        return True
    return np.inf if dtypes.is_inexact(dtype) else dtypes.iinfo(dtype).max


# name -> (scatter, reduction of buckets, the reduction of no elements, name of the result)
_KINDS = {
    "segment_sum": (lax.scatter_add, "sum", lambda dtype: 0, "sums"),
    "segment_prod": (lax.scatter_mul, "prod", lambda dtype: 1, "products"),
    "segment_min": (lax.scatter_min, "min", _highest, "least elements"),
    "segment_max": (lax.scatter_max, "max", _lowest, "greatest elements"),
}


# The elements of a segment without elements: the identity of the reduction.
_EMPTY = {
    "segment_sum": "zeros",
    "segment_prod": "ones",
    "segment_min": "the greatest value of the dtype",
    "segment_max": "the least value of the dtype",
}


_CONSTANTS = ("num_segments", "bucket_size", "indices_are_sorted", "unique_indices", "mode")


def _define(name: str, example: str):
    scatter, combine, identity, what = _KINDS[name]

    def reduced(data, ids, num_segments, bucket_size, indices_are_sorted, unique_indices, mode):
        empty = jnp.full((num_segments, *data.shape[1:]), identity(data.dtype), data.dtype)
        dimension_numbers = lax.ScatterDimensionNumbers(
            update_window_dims=tuple(range(1, data.ndim)), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
        )
        options = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices, "mode": mode}
        reduce = lambda values, numbers: scatter(empty, numbers[..., None], values, dimension_numbers, **options)
        if bucket_size is None:
            return reduce(data, ids)
        starts = range(0, ids.shape[0], bucket_size)
        parts = [reduce(data[s : s + bucket_size], ids[s : s + bucket_size]) for s in starts]
        return getattr(jnp, combine)(jnp.stack(parts), axis=0).astype(data.dtype) if parts else empty

    reduced.__name__ = reduced.__qualname__ = name
    program = one_program(reduced, static=_CONSTANTS)

    def segment(
        data: Any,
        segment_ids: Any,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Any = None,
        out_sharding: Any = None,
    ):
        data, ids = arrays(name, data, segment_ids)
        if combine in ("sum", "prod") and dtypes.is_bool(data.dtype):
            raise TypeError(f"{name}: data are numbers, got {data.dtype}; convert them, or use segment_max for 'any'")
        if dtypes.is_extended(data.dtype):
            raise TypeError(
                public(f"{name}: data are numbers, got {data.dtype}; jax.random.key_data has the numbers of keys")
            )
        if not dtypes.is_integer(ids.dtype):
            raise TypeError(f"{name}: segment_ids must be integers, got {ids.dtype}")
        if not ids.ndim and not data.ndim:
            ids = ids[None]
        if ids.ndim == 1 and (not data.ndim or dims.same_dim(data.shape[0], 1)):
            data = jnp.broadcast_to(data, (ids.shape[0], *data.shape[1:]))
        if ids.ndim != 1 or not dims.same_dim(ids.shape[0], data.shape[0]):
            raise ValueError(f"{name}: segment_ids {ids.shape} must number the leading axis of data {data.shape}")
        if num_segments is None:
            hint = f"{name}() `num_segments` argument: pass the number of segments where the ids are traced."
            num_segments = concrete_int(jnp.max(ids), hint) + 1 if ids.size else 0
        num_segments = num_segments if dims.is_symbolic(num_segments) else dims.integer(num_segments, "num_segments")
        if dims.is_constant_dim(num_segments) and num_segments < 0:
            raise ValueError(f"num_segments must be non-negative. {name} got {num_segments}")
        if bucket_size is not None:
            bucket_size = dims.integer(bucket_size, "bucket_size")
        out = program(data, ids, num_segments, bucket_size, indices_are_sorted, unique_indices, mode)
        return lax.placed(out, out_sharding)

    text = f"""The {what} of the segments of an array.

    Args:
      data: an array; a scalar, or a leading axis of length 1, is broadcast to the number of `segment_ids`.
      segment_ids: the segment of each element along the leading axis, a vector of integers, sorted or not (a scalar for
        a scalar). Elements whose number is negative, or not below `num_segments`, do not count.
      num_segments: the number of segments; default: the greatest number in `segment_ids` plus one, which must be known
        while tracing.
      indices_are_sorted, unique_indices: promises about `segment_ids` that may make it faster.
      bucket_size: reduce this many elements at a time, for accuracy.
      mode: what happens to numbers out of range, as in ``x.at[...]``.
      out_sharding: the sharding of the result, or None.

    Returns:
      An array of shape ``(num_segments, *rest)``; a segment without elements has {_EMPTY[name]}.
    """
    return named(segment, name, __name__, text, example)


segment_sum: Final = _define(
    "segment_sum",
    example="""
    >>> jax.ops.segment_sum(jnp.array([5, 1, 7, 2]), jnp.array([0, 2, 2, 0]), num_segments=3)
    Array([7, 0, 8], dtype=int32)
    """,
)
segment_prod: Final = _define(
    "segment_prod",
    example="""
    >>> jax.ops.segment_prod(jnp.array([5, 1, 7, 2]), jnp.array([0, 0, 1, 1]), num_segments=2)
    Array([ 5, 14], dtype=int32)
    """,
)
segment_min: Final = _define(
    "segment_min",
    example="""
    >>> jax.ops.segment_min(jnp.array([5, 1, 7, 2]), jnp.array([0, 0, 1, 1]), num_segments=2)
    Array([1, 2], dtype=int32)
    """,
)
segment_max: Final = _define(
    "segment_max",
    example="""
    >>> jax.ops.segment_max(jnp.array([5, 1, 7, 2]), jnp.array([0, 0, 1, 1]), num_segments=2)
    Array([5, 7], dtype=int32)
    """,
)

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]
