"""Promotion of operands, as `jax.numpy` does it, for functions of libraries."""

from __future__ import annotations

from typing import Any

from bedrax import lax
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.dtypes import to_complex_dtype
from bedrax.lax.promotion import convert, promote_dtypes


def promote_dtypes_inexact(*args: Any) -> list[Array]:
    """Return arrays of one dtype of floats or complex numbers. Their shapes are those of the operands.

    Examples:

      >>> from bedrax.extend.promotion import promote_dtypes_inexact
      >>> promote_dtypes_inexact(jnp.int8([1, 2]), jnp.float16(3))
      [Array([1., 2.], dtype=float16), Array(3., dtype=float16)]
    """
    return promote_dtypes("promote_dtypes_inexact", [lax.asarray(x) for x in args], to_inexact=True)


def promote_dtypes_complex(*args: Any) -> list[Array]:
    """Return arrays of one dtype of complex numbers. Their shapes are those of the operands.

    Examples:

      >>> from bedrax.extend.promotion import promote_dtypes_complex
      >>> promote_dtypes_complex(jnp.int8([1, 2]), jnp.float16(3))
      [Array([1.+0.j, 2.+0.j], dtype=complex64), Array(3.+0.j, dtype=complex64)]
    """
    arrays = promote_dtypes_inexact(*args)
    avals = map(aval_of, arrays)
    return [convert(x, a, to_complex_dtype(a.dtype), a.weak_type) for x, a in zip(arrays, avals)]
