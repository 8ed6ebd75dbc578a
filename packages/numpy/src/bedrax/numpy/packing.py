"""Bits packed into bytes."""

from __future__ import annotations

import bedrax.numpy as jnp
import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax.choices import one_of
from bedrax.numpy.arguments import aligned, array, axis_index

__all__ = ["packbits", "unpackbits"]


def _shifts(bitorder: str) -> np.ndarray:
    one_of("packbits", "bitorder", bitorder, ("little", "big"))
    return np.arange(8, dtype=np.uint8) if bitorder == "little" else np.arange(7, -1, -1).astype(np.uint8)


@one_program(static=("axis", "bitorder"))
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Eight elements along an axis as the bits of one uint8; nonzero is 1, missing ones at the end are 0.

    Args:
      a: array of integers or booleans.
      axis: the axis; None packs the flattened array.
      bitorder: ``"big"``: the first element is the highest bit; or ``"little"``.

    Raises:
      TypeError: `a` is of floats.

    Examples:

      >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1]))
      Array([131], dtype=uint8)
    """
    shifts = _shifts(bitorder)
    a = array("packbits", a)
    if not (dtypes.is_integer(a.dtype) or dtypes.is_bool(a.dtype)):
        raise TypeError(f"packbits: Expected an input array of integer or boolean data type, got {a.dtype}")
    if axis is None:
        a, axis = jnp.ravel(a), 0
    axis = axis_index(axis, a.ndim)
    bits = jnp.moveaxis(a.astype(np.bool_).astype(np.uint8), axis, -1)
    n = bits.shape[-1]
    count = -(-n // 8)
    padding = [(0, 0, 0)] * (bits.ndim - 1) + [(0, count * 8 - n, 0)]
    bits = lax.pad(bits, np.uint8(0), padding).reshape(*bits.shape[:-1], count, 8)
    return jnp.moveaxis(jnp.sum(bits << aligned(shifts, bits), axis=-1, dtype=np.uint8), -1, axis)


@one_program(static=("axis", "count", "bitorder"))
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of bytes, eight elements for each along an axis.

    Args:
      a: array of uint8.
      axis: the axis; None unpacks the flattened array.
      count: the number of bits to return: missing ones are 0, a negative number is cut off at the end.
      bitorder: as for `packbits`.

    Raises:
      TypeError: `a` is not of uint8.

    Examples:

      >>> jnp.unpackbits(jnp.array([131], dtype=jnp.uint8))
      Array([1, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    shifts = _shifts(bitorder)
    a = array("unpackbits", a)
    if a.dtype != np.uint8:
        raise TypeError(f"Expected an input array of unsigned byte data type, got {a.dtype}")
    if axis is None:
        a, axis = jnp.ravel(a), 0
    axis = axis_index(axis, a.ndim)
    a = jnp.moveaxis(a, axis, -1)
    a = a[..., None]
    bits = (a >> aligned(shifts, a)) & np.uint8(1)
    bits = bits.reshape(*a.shape[:-2], a.shape[-2] * 8)
    if count is not None:
        n = bits.shape[-1]
        count = dims.integer(count, "count")
        wanted = count if count >= 0 else n + count
        if wanted < 0:
            raise ValueError(f"count={count} cuts off more than the {n} bits there are")
        bits = lax.pad(bits, np.uint8(0), [(0, 0, 0)] * (bits.ndim - 1) + [(0, wanted - n, 0)])
    return jnp.moveaxis(bits, -1, axis)
