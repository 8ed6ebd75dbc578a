"""Operations on (batches of) matrices before and after a decomposition."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from bedrax.core import dtypes, positions
from bedrax.core.avals import aval_of
from bedrax.core.typing import ArrayLike
from bedrax.lax import filling
from bedrax.lax.primitives import contractions, conversions, elementwise, reductions, shaping


def transposed(x: Any) -> Any:
    """Matrices with rows and columns exchanged."""
    ndim = len(aval_of(x).shape)
    return shaping.transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def adjoint(x: Any) -> Any:
    """Conjugate transposes."""
    x = transposed(x)
    return elementwise.conj(x) if dtypes.is_complex(aval_of(x).dtype) else x


def triangle_mask(shape: tuple[Any, ...], lower: bool, offset: int = 0) -> Any:
    """Boolean mask of a triangle of matrices of `shape`, from `offset` diagonals above the main one."""
    dtype = positions.dtype_for(*shape[-2:])
    with positions.scope(*shape[-2:]):
        rows = shaping.broadcasted_iota(dtype, shape, len(shape) - 2)
        columns = shaping.broadcasted_iota(dtype, shape, len(shape) - 1)
        if offset:
            rows = elementwise.add(rows, dtype.type(offset))
        return elementwise.ge(rows, columns) if lower else elementwise.le(rows, columns)


def triangle(x: Any, lower: bool, offset: int = 0) -> Any:
    """Matrices with zeros outside a triangle: of columns j <= i + offset (`lower`), or j >= i + offset."""
    return elementwise.select(triangle_mask(aval_of(x).shape, lower, offset), x, filling.zeros_like(x))


def matmul(x: Any, y: Any) -> Any:
    """Products of matrices with equal batch axes, at the highest precision."""
    n = len(aval_of(x).shape)
    batch = tuple(range(n - 2))
    return contractions.dot_general(
        x, y, (((n - 1,), (n - 2,)), (batch, batch)), precision=contractions.Precision.HIGHEST
    )


def symmetrized(x: ArrayLike) -> Any:
    """The Hermitian parts of matrices."""
    return elementwise.mul(elementwise.add(x, adjoint(x)), np.array(0.5, aval_of(x).dtype))


def finite_or_zero(x: ArrayLike) -> tuple[Any, ...]:
    """Matrices that are finite, zeros in place of the others, and for each matrix whether it is one of these (0, 1).

    LAPACK's divide and conquer for singular values may not terminate if an element is infinite.
    """
    parts = [elementwise.real(x), elementwise.imag(x)] if dtypes.is_complex(aval_of(x).dtype) else [x]
    shape = aval_of(x).shape
    bad = [elementwise.bitwise_not(elementwise.is_finite(part)) for part in parts]
    bad = functools.reduce(
        elementwise.bitwise_or, [reductions.reduce_or(b, (len(shape) - 2, len(shape) - 1)) for b in bad]
    )
    everywhere = shaping.broadcast_in_dim(bad, shape, range(len(shape) - 2))
    return elementwise.select(everywhere, filling.zeros_like(x), x), conversions.convert_element_type(bad, np.int32)
