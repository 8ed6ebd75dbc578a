"""Diagonals and triangles: `eye`, `diag`, `tril`, their indices, and `vander`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes, positions, tracing
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.lax.operators import power
from bedrax.lax.promotion import operand
from bedrax.numpy.arguments import array, axis_index, counting
from bedrax.numpy.creation import asarray, ones, place
from bedrax.numpy.manipulation import moveaxis, resize
from bedrax.numpy.searching import nonzero

if TYPE_CHECKING:
    from bedrax.autodiff.linearization import Node


def _within(k: Any, rows: Any, columns: Any) -> Any:
    """Limit the number of a diagonal to the edges of the matrix.

    Diagonals further away have no elements either. A sum of a position and the limited number does not overflow.
    """
    if not (type(rows) is int and type(columns) is int):
        return k
    if isinstance(k, (int, np.integer)):
        return max(-rows, min(int(k), columns))
    k = counting(k, rows, columns)
    least = 0 if dtypes.is_unsigned_integer(k.dtype) else -rows
    return lax.clamp(k.dtype.type(least), k, k.dtype.type(columns))


def _band(shape: tuple, k: Any, compare: Callable, dtype: Any = np.bool_) -> Any:
    """``compare(row + k, column)`` at each position of matrices of a shape."""
    return _band_of(shape, _within(k, *shape), compare, dtype)


@one_program(static=("shape", "compare", "dtype"))
def _band_of(shape: tuple, k: Any, compare: Callable, dtype: Any) -> Any:
    kind = positions.dtype_for(*shape)
    with positions.scope(*shape):
        row, column = (lax.broadcasted_iota(kind, shape, d) for d in (0, 1))
        shift = kind.type(k) if isinstance(k, int) else lax.convert_element_type(k, kind)
        inside = compare(lax.add(row, shift), column)
    return lax.convert_element_type(inside, dtype)


def diagonal_number(name: str, what: str, k: Any) -> Any:
    """The number of a diagonal, the argument `what` of function `name`: an integer, which may be traced or symbolic."""
    if isinstance(k, int) or dims.is_symbolic(k):
        return k
    if isinstance(k, tracing.Tracer):
        if dtypes.is_integer(k.dtype) and not k.shape:
            return k
        raise TypeError(f"{what} argument to jnp.{name} must be an integer, got {aval_of(k)}")
    return dims.integer(k, f"{what} argument to jnp.{name}")


def eye(N: Any, M: Any = None, k: ArrayLike = 0, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """Ones on a diagonal and zeros elsewhere.

    Args:
      N, M: the numbers of rows and columns; `M` defaults to `N`.
      k: which diagonal; 0 is the main one, positive ones lie above.
      dtype: default: float.
      device: the device or the sharding of the array.

    Examples:

      >>> jnp.eye(2)
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
      >>> jnp.eye(2, 3, k=1, dtype=int)
      Array([[0, 1, 0],
             [0, 0, 1]], dtype=int32)
    """
    n = dims.canonical_dim(N)
    m = n if M is None else dims.canonical_dim(M)
    for size in (n, m):
        if isinstance(size, int) and size < 0:
            raise ValueError(f"negative dimensions are not allowed, got {N} and {M}")
    dtype = dtypes.default_float_dtype() if dtype is None else dtypes.explicit_dtype(dtype, "eye")
    k = diagonal_number("eye", "k", k)
    return place(_band((n, m), k, lax.eq, dtype), device)


def identity(n: Any, dtype: DTypeLike | None = None) -> Array:
    """The identity matrix.

    Args:
      n: the number of rows, and of columns.
      dtype: the dtype. Default: the default float dtype.

    Raises:
      ValueError: `n` is negative.

    Examples:

      >>> jnp.identity(2)
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return a matrix with ones at and below a diagonal, and zeros above.

    Args:
      N: the number of rows.
      M: the number of columns. Default: `N`.
      k: the diagonal: 0 is the main one, 1 the one above, -1 the one below.
      dtype: the dtype. Default: the default float dtype.

    Returns:
      An array of shape ``(N, M)``.

    Examples:

      >>> jnp.tri(3, dtype=int)
      Array([[1, 0, 0],
             [1, 1, 0],
             [1, 1, 1]], dtype=int32)
    """
    n = dims.canonical_dim(N)
    m = n if M is None else dims.canonical_dim(M)
    dtype = dtypes.default_float_dtype() if dtype is None else dtypes.explicit_dtype(dtype, "tri")
    return _band((n, m), diagonal_number("tri", "k", k), lax.ge, dtype)


def _triangle(name: str, m: Any, k: int, lower: bool) -> Array:
    x = array(name, m)
    if x.ndim < 2:
        raise ValueError(f"jnp.{name} needs a matrix, got shape {x.shape}")
    # A `k - 1` would wrap around if it is traced and the least number of its dtype.
    mask = _band(x.shape[-2:], diagonal_number(name, "k", k), lax.ge if lower else lax.gt)
    mask = lax.broadcast_in_dim(mask, x.shape, (x.ndim - 2, x.ndim - 1))
    zero = lax.full_like(x, 0)
    return lax.select(mask, x, zero) if lower else lax.select(mask, zero, x)


@one_program(static=("k",))
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Replace the elements above a diagonal by zeros.

    Args:
      m: array of rank 2 or more; its last two axes are matrices.
      k: the diagonal: 0 is the main one, 1 the one above, -1 the one below.

    Returns:
      An array of the type of `m`.

    Examples:

      >>> jnp.tril(jnp.arange(1, 10).reshape(3, 3))
      Array([[1, 0, 0],
             [4, 5, 0],
             [7, 8, 9]], dtype=int32)
    """
    return _triangle("tril", m, k, True)


@one_program(static=("k",))
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Replace the elements below a diagonal by zeros.

    Args:
      m: array of rank 2 or more; its last two axes are matrices.
      k: the diagonal: 0 is the main one, 1 the one above, -1 the one below.

    Returns:
      An array of the type of `m`.

    Examples:

      >>> jnp.triu(jnp.arange(1, 10).reshape(3, 3), k=1)
      Array([[0, 2, 3],
             [0, 0, 6],
             [0, 0, 0]], dtype=int32)
    """
    return _triangle("triu", m, k, False)


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals in the plane of two axes, as the last axis of the result.

    Args:
      a: array of rank 2 at least.
      offset: which diagonal, as `k` in `eye`.
      axis1, axis2: the axes of rows and columns.

    Examples:

      >>> x = jnp.arange(6).reshape(2, 3)
      >>> jnp.diagonal(x)
      Array([0, 4], dtype=int32)
      >>> jnp.diagonal(x, offset=1)
      Array([1, 5], dtype=int32)
    """
    x = array("diagonal", a)
    if x.ndim < 2:
        raise ValueError(f"diagonal needs two axes, got shape {x.shape}")
    offset = dims.integer(offset, "offset argument to jnp.diagonal")
    i, j = axis_index(axis1, x.ndim), axis_index(axis2, x.ndim)
    if i == j:
        raise ValueError(f"axis1 and axis2 cannot be the same, got {axis1} and {axis2} for shape {x.shape}")
    x = moveaxis(x, (i, j), (-2, -1))
    n, m = x.shape[-2:]
    offset = _within(offset, n, m)
    length = dims.non_negative(dims.min_dim(n, m - offset) if offset >= 0 else dims.min_dim(n + offset, m))
    dtype = positions.dtype_for(n, m)
    with positions.scope(n, m):
        start = lax.iota(dtype, length)
        rows = start if offset >= 0 else lax.add(start, dtype.type(-offset))
        columns = lax.add(start, dtype.type(offset)) if offset > 0 else start
        return x.at[..., rows, columns].get(mode="promise_in_bounds", wrap_negative_indices=False)


@one_program(static=("k",))
def diag(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with a vector on a diagonal, or the diagonal of a matrix.

    Args:
      v: vector or matrix.
      k: which diagonal, as in `eye`.

    Examples:

      >>> jnp.diag(jnp.array([1, 2]))
      Array([[1, 0],
             [0, 2]], dtype=int32)
      >>> jnp.diag(jnp.array([[1, 2], [3, 4]]), k=1)
      Array([2], dtype=int32)
    """
    x = array("diag", v)
    k = dims.integer(k, "k argument to jnp.diag")
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag input must be 1d or 2d, got shape {x.shape}; use jnp.diagonal for stacks of matrices")
    zero = lax.full((), 0, x.dtype)
    padded = lax.pad(x, zero, [(max(0, -k), max(0, k), 0)])
    n = padded.shape[0]
    wide = lax.broadcast_in_dim(padded, (n, n), (0,))  # the row is the index of the element
    return lax.select(_band((n, n), k, lax.eq), wide, lax.full_like(wide, 0))


@one_program(static=("k",))
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """A matrix with the elements of an array, flattened, on a diagonal.

    Args:
      v: array, flattened.
      k: which diagonal, as in `eye`.

    Returns:
      A square matrix of the dtype of `v`, with ``v.size + abs(k)`` rows.

    Examples:

      >>> jnp.diagflat(jnp.array([[1], [2]]))
      Array([[1, 0],
             [0, 2]], dtype=int32)
    """
    x = array("diagflat", v)
    k = dims.integer(k, "k argument to jnp.diagflat")
    return diag(lax.reshape(x, (dims.size(x.shape),)), k)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array of `ndim` axes of length `n`.

    Args:
      n: the length of each axis, a known int.
      ndim: the number of axes.

    Returns:
      A tuple of `ndim` equal integer arrays of shape ``(n,)``.

    Raises:
      ValueError: `n` or `ndim` is negative.

    Examples:

      >>> x = jnp.zeros((2, 2), int)
      >>> x.at[jnp.diag_indices(2)].set(7)
      Array([[7, 0],
             [0, 7]], dtype=int32)
    """
    n, ndim = (
        dims.integer(count, f"{what} argument to jnp.diag_indices") for what, count in (("n", n), ("ndim", ndim))
    )
    if n < 0:
        raise ValueError(f"n argument to diag_indices must be nonnegative, got {n}")
    if ndim < 0:
        raise ValueError(f"ndim argument to diag_indices must be nonnegative, got {ndim}")
    return (lax.iota(dtypes.default_int_dtype(), n),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array with axes of equal length.

    Examples:

      >>> jnp.diag_indices_from(jnp.ones((2, 2)))
      (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    shape = aval_of(operand("diag_indices_from", arr)).shape
    if len(shape) < 2:
        raise ValueError(f"input array must be at least 2-d, got shape {shape}")
    if len(set(shape)) != 1:
        raise ValueError(f"All dimensions of input must be of equal length, got shape {shape}")
    return diag_indices(shape[0], len(shape))


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """The array with its main diagonal replaced.

    Args:
      a: array of rank 2 at least.
      val: a scalar, or values that are repeated as needed; without values nothing is replaced.
      wrap: for tall matrices: go on after the last column.
      inplace: must be False: arrays are immutable.

    Examples:

      >>> jnp.fill_diagonal(jnp.zeros((2, 2), int), 5, inplace=False)
      Array([[5, 0],
             [0, 5]], dtype=int32)
    """
    if inplace:
        raise NotImplementedError("fill_diagonal: arrays are immutable; pass inplace=False and use what is returned")
    if wrap:
        raise NotImplementedError("fill_diagonal: wrap=True is not supported")
    x, values = array("fill_diagonal", a), array("fill_diagonal", val)
    if x.ndim < 2:
        raise ValueError(f"array must be at least 2-d, got shape {x.shape}")
    if x.ndim > 2 and len(set(x.shape)) != 1:
        raise ValueError(f"All dimensions of input must be of equal length, got shape {x.shape}")
    n = min(x.shape)
    if not dims.size(values.shape):  # as in NumPy
        return x
    new = values if not values.ndim else resize(values, (n,))
    i = lax.iota(np.int32, n)
    return x.at[(i,) * x.ndim].set(new, mode="promise_in_bounds", wrap_negative_indices=False)


def _static_triangle(name: str, n: Any, k: Any, m: Any, lower: bool) -> tuple[Array, Array]:
    m = n if m is None else m
    k = dims.integer(k, f"k argument to jnp.{name}")
    if dims.is_symbolic(n) or dims.is_symbolic(m):
        return _symbolic_triangle(n, k, m, lower)
    n, m = dims.integer(n, f"n argument to jnp.{name}"), dims.integer(m, f"m argument to jnp.{name}")
    mask = np.tri(n, m, k if lower else k - 1, dtype=bool)
    rows, columns = np.nonzero(mask if lower else ~mask)
    kind = dtypes.default_int_dtype()
    return asarray(rows.astype(kind)), asarray(columns.astype(kind))


def _symbolic_triangle(n: Any, k: int, m: Any, lower: bool) -> tuple[Array, Array]:
    """The positions for symbolic sizes; the number of elements is a dimension."""

    def half_square(size: Any) -> Any:  # 1 + 2 + ... + size
        size = dims.non_negative(size)
        return size * (size + 1) // 2

    def below(k: int) -> Any:  # the sum over rows i of min(max(i + k + 1, 0), m)
        return half_square(n + k) - half_square(k) - half_square(n + k - m) + half_square(k - m)

    mask = tri(n, m, k if lower else k - 1, dtype=bool)
    count = below(k) if lower else n * m - below(k - 1)
    return nonzero(mask if lower else ~mask, size=count)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """(rows, columns) of the elements at and below a diagonal of an ``n x m`` matrix.

    Args:
      n: the number of rows.
      k: the diagonal: 0 is the main one, 1 the one above, -1 the one below.
      m: the number of columns. Default: `n`.

    Returns:
      Two integer arrays of rank 1, row by row.

    Examples:

      >>> jnp.tril_indices(2)
      (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _static_triangle("tril_indices", n, k, m, True)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """(rows, columns) of the elements at and above a diagonal of an ``n x m`` matrix.

    Args:
      n: the number of rows.
      k: the diagonal: 0 is the main one, 1 the one above, -1 the one below.
      m: the number of columns. Default: `n`.

    Returns:
      Two integer arrays of rank 1, row by row.

    Examples:

      >>> jnp.triu_indices(2)
      (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _static_triangle("triu_indices", n, k, m, False)


def _matrix_shape(name: str, arr: Any) -> tuple:
    shape = tuple(arr.shape) if hasattr(arr, "shape") else aval_of(operand(name, arr)).shape
    if len(shape) != 2:
        raise ValueError(f"{name}: Only 2-D inputs are accepted, got shape {shape}")
    return shape


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`tril_indices` for the shape of a matrix.

    Args:
      arr: array of rank 2; only its shape is used.
      k: as in `tril_indices`.

    Raises:
      ValueError: `arr` is not of rank 2.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> x[jnp.tril_indices_from(x)]
      Array([1, 3, 4], dtype=int32)
    """
    n, m = _matrix_shape("tril_indices_from", arr)
    return _static_triangle("tril_indices_from", n, k, m, True)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """`triu_indices` for the shape of a matrix.

    Args:
      arr: array of rank 2; only its shape is used.
      k: as in `triu_indices`.

    Raises:
      ValueError: `arr` is not of rank 2.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> x[jnp.triu_indices_from(x, k=1)]
      Array([2], dtype=int32)
    """
    n, m = _matrix_shape("triu_indices_from", arr)
    return _static_triangle("triu_indices_from", n, k, m, False)


def mask_indices(n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None) -> tuple[Array, Array]:
    """The indices where a function like `triu` of an ``n x n`` matrix of ones is not zero.

    Args:
      n: the size of the matrix.
      mask_func: function of a matrix and `k`.
      k: its second argument.
      size: as in `nonzero`.

    Examples:

      >>> x = jnp.arange(9).reshape(3, 3)
      >>> x[jnp.mask_indices(3, jnp.triu)]
      Array([0, 1, 2, 4, 5, 8], dtype=int32)
    """
    return nonzero(mask_func(ones((n, n)), k), size=size)


@one_program(static=("N", "increasing"))
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The Vandermonde matrix: powers of a vector as columns.

    Args:
      x: vector.
      N: the number of columns; default: the length of the vector.
      increasing: whether exponents grow from left to right.

    Examples:

      >>> jnp.vander(jnp.array([1, 2, 3]))
      Array([[1, 1, 1],
             [4, 2, 1],
             [9, 3, 1]], dtype=int32)
    """
    v = array("vander", x)
    if v.ndim != 1:
        raise ValueError(f"vander: x must be a one-dimensional array, got shape {v.shape}")
    count = v.shape[0] if N is None else dims.integer(N, "N argument to jnp.vander")
    if count < 0:
        raise ValueError(f"vander: N must be nonnegative, got {count}")
    exponents = lax.iota(v.dtype if dtypes.is_integer(v.dtype) else dtypes.default_int_dtype(), count)
    if not increasing:
        exponents = lax.rev(exponents, (0,))
    shape = (v.shape[0], count)
    v, exponents = lax.broadcast_in_dim(v, shape, (0,)), lax.broadcast_in_dim(exponents, shape, (1,))
    return lax.pow(v, exponents) if dtypes.is_inexact(v.dtype) else power(v, exponents)


def masked_diagonal(x: Node | ArrayLike, aval: ShapedArray, axis1: int, axis2: int, offset: int = 0) -> Array | Node:
    """`x` with zeros off the diagonal of two axes."""
    sizes = aval.shape[axis1], aval.shape[axis2]
    dtype = positions.dtype_for(*sizes)
    with positions.scope(*sizes):
        row = lax.broadcasted_iota(dtype, aval.shape, axis1)
        column = lax.broadcasted_iota(dtype, aval.shape, axis2)
        offset = _within(offset, *sizes)
        if not (isinstance(offset, int) and offset == 0):
            row = lax.add(row, lax.convert_element_type(offset, dtype))
        chosen = lax.eq(row, column)
    return lax.select(chosen, x, lax.full(aval.shape, 0, aval.dtype))
