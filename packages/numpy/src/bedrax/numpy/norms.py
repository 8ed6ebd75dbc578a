"""Norms of vectors and matrices; `bedrax.numpy.linalg` exports them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bedrax.numpy as jnp
import numpy as np
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives import linalg as factor
from bedrax.numpy.arguments import axis_index, inexact

__all__ = ["matrix_norm", "norm", "vector_norm"]


@one_program(static=("ord", "axis", "keepdims"))
def norm(
    x: ArrayLike, ord: int | str | None = None, axis: None | tuple[int, ...] | int = None, keepdims: bool = False
) -> Array:
    """Norms of vectors or matrices.

    Args:
      x: array.
      ord: for vectors: a number p for ``sum(abs(x)**p)**(1/p)``, 0 for the count of nonzeros, inf and -inf for the
        extremes; for matrices: ``"fro"``, ``"nuc"``, 1, -1 (column sums), 2, -2 (singular values), inf, -inf (row sums).
        None: the root of the sum of squares.
      axis: one axis: vectors; two axes: matrices. None: all of `x`, flattened if there is no `ord`.
      keepdims: keep reduced axes with length 1.

    Raises:
      ValueError: an `ord` that does not exist for vectors or matrices; more than two axes.

    Examples:

      >>> x = jnp.array([[3., 4.], [6., 8.]])
      >>> jnp.linalg.norm(x, axis=1)
      Array([ 5., 10.], dtype=float32)
      >>> jnp.linalg.norm(x, ord=jnp.inf)
      Array(14., dtype=float32)
    """
    (x,) = inexact("linalg.norm", x)
    if axis is None:
        if ord is None:
            return _root_of_squares(x, tuple(range(x.ndim)), keepdims)
        axes = tuple(range(x.ndim))
    else:
        axes = tuple(axis_index(d, x.ndim) for d in (axis if isinstance(axis, Sequence) else (axis,)))
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, "fro" if ord is None else ord, axes, keepdims)
    raise ValueError(f"Improper number of axes for norm: axis={axis} for an array of shape {x.shape}")


def _root_of_squares(x: Array, axes, keepdims) -> Array:
    squares = jnp.real(x * jnp.conj(x)) if dtypes.is_complex(x.dtype) else x * x
    return jnp.sqrt(jnp.sum(squares, axis=axes, keepdims=keepdims))


def _vector_norm(x: Array, ord, axes, keepdims) -> Array:
    if ord == np.inf:
        return jnp.max(abs(x), axis=axes, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return jnp.min(abs(x), axis=axes, keepdims=keepdims, initial=np.inf)
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm. Vector norms have an order that is a number.")
    if ord == 0:
        return jnp.sum(x != 0, axis=axes, keepdims=keepdims, dtype=dtypes.to_real_dtype(x.dtype))
    if ord == 1:
        return jnp.sum(abs(x), axis=axes, keepdims=keepdims)
    if ord == 2:
        return _root_of_squares(x, axes, keepdims)
    size = abs(x)
    p = jnp.asarray(ord, size.dtype)
    return jnp.sum(size**p, axis=axes, keepdims=keepdims) ** (1 / p)


def _largest(x: Array, **options: Any) -> Array:
    """The largest of numbers that are not negative; 0 if there is none."""
    return jnp.max(x, initial=0 if dims.definitely_equal(x.size, 0) else None, **options)


def _matrix_norm(x: Array, ord, axes, keepdims) -> Array:
    if axes[0] == axes[1]:
        raise ValueError(f"Duplicate axes given: {axes}")
    row, column = axes
    total = lambda d: jnp.sum(abs(x), axis=d, keepdims=True)
    if ord in ("fro", "f"):
        return _root_of_squares(x, axes, keepdims)
    if ord in ("nuc", 2, -2):
        s = factor.svd(jnp.moveaxis(x, axes, (-2, -1)), compute_uv=False)
        out = jnp.sum(s, axis=-1) if ord == "nuc" else _largest(s, axis=-1) if ord == 2 else jnp.min(s, axis=-1)
        return jnp.expand_dims(out, axes) if keepdims else out
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError(f"Invalid order '{ord}' for matrix norm. Orders are 1, -1, 2, -2, inf, -inf, 'fro' and 'nuc'.")
    reduce = _largest if ord > 0 else jnp.min
    out = reduce(total(row if abs(ord) == 1 else column), axis=axes, keepdims=True)
    return out if keepdims else jnp.squeeze(out, axes)


@one_program(static=("keepdims", "ord"))
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: str | int = "fro") -> Array:
    """The norm of matrices in the last two axes.

    Args:
      x: array of rank 2 or more; integers become floats.
      keepdims: keep reduced axes with length 1.
      ord: which norm of matrices, as for `norm`.

    Raises:
      ValueError: an `ord` that does not exist for matrices.

    Examples:

      >>> jnp.linalg.matrix_norm(jnp.array([[3., 0.], [0., 4.]]))
      Array(5., dtype=float32)
      >>> jnp.linalg.matrix_norm(jnp.array([[3., 0.], [0., 4.]]), ord=1)
      Array(4., dtype=float32)
    """
    return norm(x, ord=ord, axis=(-2, -1), keepdims=keepdims)


@one_program(static=("axis", "keepdims", "ord"))
def vector_norm(
    x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: int | str = 2
) -> Array:
    """The norm of vectors along one or more axes.

    Args:
      x: array; integers become floats.
      axis: None (all, flattened), one axis, or several.
      keepdims: keep reduced axes with length 1.
      ord: which norm of vectors, as for `norm`.

    Raises:
      ValueError: `ord` is not a number.

    Examples:

      >>> jnp.linalg.vector_norm(jnp.array([[3., 4.], [6., 8.]]), axis=1)
      Array([ 5., 10.], dtype=float32)
      >>> jnp.linalg.vector_norm(jnp.array([3., -4.]), ord=1)
      Array(7., dtype=float32)
    """
    (x,) = inexact("linalg.vector_norm", x)
    axes = (
        tuple(range(x.ndim))
        if axis is None
        else tuple(axis_index(d, x.ndim) for d in (axis if isinstance(axis, Sequence) else (axis,)))
    )
    return _vector_norm(x, ord, axes, keepdims)
