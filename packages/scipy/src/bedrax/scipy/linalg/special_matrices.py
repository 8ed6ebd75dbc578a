"""Matrices of special form."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import bedrax.numpy as jnp
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.lax.choices import one_of
from bedrax.numpy.arguments import array, concrete_int, inexact, promoted

__all__ = [
    "block_diag",
    "circulant",
    "companion",
    "convolution_matrix",
    "dft",
    "fiedler",
    "fiedler_companion",
    "hadamard",
    "hankel",
    "helmert",
    "hilbert",
    "invhilbert",
    "invpascal",
    "leslie",
    "pascal",
    "toeplitz",
]


def _size(name: str, n, least: int = 0) -> int:
    n = concrete_int(n, f"The argument n of {name} determines a shape.")
    if n < least:
        raise ValueError(f"{name}: n must be at least {least}, got {n}")
    return n


def _vector(name: str, x: Array, least: int = 0) -> Array:
    if x.ndim < 1 or x.shape[-1] < least:
        raise ValueError(f"{name}: the last axis has at least {least} elements, got shape {x.shape}")
    return x


def block_diag(*arrs: ArrayLike) -> Array:
    """A block-diagonal matrix: the matrices stand along its diagonal, and it is zero elsewhere.

    Args:
      *arrs: matrices; vectors and scalars count as rows.

    Raises:
      ValueError: an argument has more than two axes.

    Examples:

      >>> jax.scipy.linalg.block_diag(jnp.array([[1, 2]]), jnp.array([[3], [4]]))
      Array([[1, 2, 0],
             [0, 0, 3],
             [0, 0, 4]], dtype=int32)
    """
    if not arrs:
        return jnp.zeros((1, 0), dtypes.default_float_dtype())
    blocks = promoted("block_diag", *arrs)
    for i, block in enumerate(blocks):
        if block.ndim > 2:
            raise ValueError(f"block_diag: blocks have rank 2 at most, got shape {block.shape} at position {i}")
    blocks = [jnp.atleast_2d(block) for block in blocks]
    width, before, rows = sum(b.shape[1] for b in blocks), 0, []
    for block in blocks:
        rows.append(jnp.pad(block, ((0, 0), (before, width - before - block.shape[1]))))
        before += block.shape[1]
    return jnp.concatenate(rows)


def _range(n):
    return np.arange(n) if dims.is_constant_dim(n) else jnp.arange(n)


def _along_diagonals(values: Array, m: int, n: int) -> Array:
    """The matrices whose element (i, j) is ``values[..., i - j + n - 1]``."""
    index = _range(m)[:, None] - _range(n)[None, :] + n - 1
    return values[..., index]


def _column_and_row(name: str, c: ArrayLike, r: ArrayLike | None, default: Callable) -> tuple:
    """Vectors of one dtype and one batch, and their lengths; without `r` it is ``default(c)``."""
    if r is None:
        c = array(name, c)
        r = default(c)
    c, r = (jnp.atleast_1d(x) for x in promoted(name, c, r))
    batch = jnp.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    m, n = c.shape[-1], r.shape[-1]
    return jnp.broadcast_to(c, (*batch, m)), jnp.broadcast_to(r, (*batch, n)), m, n


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix with constant diagonals.

    Args:
      c: its first column, ``[..., m]``.
      r: its first row, ``[..., n]``, without use of its first element; None is ``conj(c)``.

    Examples:

      >>> jax.scipy.linalg.toeplitz(jnp.array([1, 2, 3]), jnp.array([1, 8, 9]))
      Array([[1, 8, 9],
             [2, 1, 8],
             [3, 2, 1]], dtype=int32)
    """
    c, r, m, n = _column_and_row("toeplitz", c, r, jnp.conj)
    return _along_diagonals(jnp.concatenate([jnp.flip(r[..., 1:], -1), c], axis=-1), m, n)


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix with constant anti-diagonals.

    Args:
      c: its first column, ``[..., m]``.
      r: its last row, ``[..., n]``, without use of its first element; None is zeros.

    Examples:

      >>> jax.scipy.linalg.hankel(jnp.array([1, 2, 3]))
      Array([[1, 2, 3],
             [2, 3, 0],
             [3, 0, 0]], dtype=int32)
    """
    c, r, m, n = _column_and_row("hankel", c, r, jnp.zeros_like)
    return jnp.concatenate([c, r[..., 1:]], axis=-1)[..., _range(m)[:, None] + _range(n)]


def circulant(c: ArrayLike) -> Array:
    """The matrix whose columns are the rotations of ``c``, of shape ``[..., n]``.

    Examples:

      >>> jax.scipy.linalg.circulant(jnp.array([1, 2, 3]))
      Array([[1, 3, 2],
             [2, 1, 3],
             [3, 2, 1]], dtype=int32)
    """
    c = jnp.atleast_1d(array("circulant", c))
    n = c.shape[-1]
    return c[..., (_range(n)[:, None] - _range(n)) % max(n, 1)]


@one_program
def companion(a: ArrayLike) -> Array:
    """The companion matrix of the polynomial with coefficients `a`, ``[..., n + 1]``, the highest power first.

    Examples:

      >>> jax.scipy.linalg.companion(jnp.array([1., -3., 2.]))
      Array([[ 3., -2.],
             [ 1.,  0.]], dtype=float32)
    """
    (a,) = inexact("companion", a)
    a = _vector("companion", a, 2)
    n = a.shape[-1] - 1
    first = -a[..., 1:] / a[..., :1]
    shift = jnp.broadcast_to(jnp.eye(n - 1, n, dtype=a.dtype), (*a.shape[:-1], n - 1, n))
    return jnp.concatenate([first[..., None, :], shift], axis=-2)


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix whose product with a vector of length n is the convolution with `a`.

    Args:
      a: array of shape ``[..., m]``.
      n: the number of columns, positive.
      mode: as for `jax.numpy.convolve`.

    Returns:
      An array of the dtype of `a`; "full" has ``m + n - 1`` rows, "same" the greater of m and n, "valid" as many as there
      are complete overlaps.

    Raises:
      ValueError: an unknown mode, or a size of 0.

    Examples:

      >>> jax.scipy.linalg.convolution_matrix(jnp.array([1, 2]), 3)
      Array([[1, 0, 0],
             [2, 1, 0],
             [0, 2, 1],
             [0, 0, 2]], dtype=int32)
    """
    n = _size("convolution_matrix", n, 1)
    a = _vector("convolution_matrix", array("convolution_matrix", a), 1)
    m = a.shape[-1]
    one_of("convolution_matrix", "mode", mode, ("full", "same", "valid"))
    zeros = jnp.zeros((*a.shape[:-1], n - 1), a.dtype)
    out = _along_diagonals(jnp.concatenate([zeros, a, zeros], axis=-1), m + n - 1, n)
    if mode == "full":
        return out
    rows = max(m, n) if mode == "same" else max(m, n) - min(m, n) + 1
    first = (min(m, n) - 1) // 2 if mode == "same" else min(m, n) - 1
    return out[..., first : first + rows, :]


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform.

    Args:
      n: its size.
      scale: None; ``"sqrtn"``: divided by ``sqrt(n)``, unitary; ``"n"``: divided by n.
      dtype: complex; the default is that of complex numbers.

    Raises:
      ValueError: the dtype is not complex.

    Examples:

      >>> jax.scipy.linalg.dft(2).real.round(3)
      Array([[ 1.,  1.],
             [ 1., -1.]], dtype=float32)
    """
    n = _size("dft", n)
    one_of("dft", "scale", scale, (None, "sqrtn", "n"))
    dtype = dtypes.default_complex_dtype() if dtype is None else dtypes.explicit_dtype(dtype, "dft")
    if not dtypes.is_complex(dtype):
        raise ValueError(f"dft: dtype is a complex dtype, such as complex64; got {dtype}")
    k = np.arange(n, dtype=np.int64)
    out = np.exp(-2j * np.pi / max(n, 1) * (np.outer(k, k) % max(n, 1)))
    if scale is not None:
        out /= math.sqrt(n) if scale == "sqrtn" else n
    return jnp.asarray(out, dtype)


@one_program
def fiedler(a: ArrayLike) -> Array:
    """The symmetric matrix with elements ``abs(a[i] - a[j])``, of `a` of shape ``[..., n]``.

    Examples:

      >>> jax.scipy.linalg.fiedler(jnp.array([1, 4, 6]))
      Array([[0, 3, 5],
             [3, 0, 2],
             [5, 2, 0]], dtype=int32)
    """
    a = jnp.atleast_1d(array("fiedler", a))
    return abs(a[..., :, None] - a[..., None, :])


@one_program
def fiedler_companion(a: ArrayLike) -> Array:
    """Fiedler's companion matrix, with five diagonals, of the polynomial with coefficients `a`, ``[n + 1]``.

    Examples:

      >>> jax.scipy.linalg.fiedler_companion(jnp.array([1., -6., 11., -6.]))
      Array([[  6., -11.,   1.],
             [  1.,   0.,   0.],
             [  0.,   6.,   0.]], dtype=float32)
    """
    (a,) = inexact("fiedler_companion", a)
    a = jnp.atleast_1d(a)
    if a.ndim != 1:
        raise ValueError(f"fiedler_companion: expected one-dimensional coefficients, got shape {a.shape}")
    if a.shape[0] <= 2:
        return -(a[1:] / a[:1])[:, None] if a.shape[0] == 2 else jnp.zeros((0, 0), a.dtype)
    a = a / a[0]
    n = a.shape[0] - 1
    out = jnp.zeros((n, n), a.dtype)
    even, inner = np.arange(0, n - 1, 2), np.arange(0, n - 2, 2)
    out = out.at[0, 0].set(-a[1]).at[1, 0].set(1)
    # Two super- and two subdiagonals, with coefficients and ones in turn.
    out = out.at[even, even + 1].set(-a[even + 2])
    out = out.at[inner, inner + 2].set(1) if inner.size else out
    later = np.arange(2, n, 2)
    out = out.at[later, later - 1].set(-a[later + 1]) if later.size else out
    behind = np.arange(3, n, 2)
    return out.at[behind, behind - 2].set(1) if behind.size else out


def hadamard(n: int, dtype: type = int) -> Array:
    """Hadamard's matrix of Sylvester's construction, of 1 and -1.

    Args:
      n: the number of rows, a power of 2.
      dtype: of the result.

    Raises:
      ValueError: `n` is not a power of 2.

    Examples:

      >>> jax.scipy.linalg.hadamard(4)
      Array([[ 1,  1,  1,  1],
             [ 1, -1,  1, -1],
             [ 1,  1, -1, -1],
             [ 1, -1, -1,  1]], dtype=int32)
    """
    n = _size("hadamard", n)
    if n < 1 or n & (n - 1):
        raise ValueError(f"hadamard: n is a power of 2, got {n}")
    out = np.ones((1, 1), np.int8)
    while out.shape[0] < n:
        out = np.block([[out, out], [out, -out]])
    return jnp.asarray(out).astype(dtype)


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's matrix of contrasts, with orthonormal rows.

    Args:
      n: the number of columns, positive.
      full: whether the constant row comes first.

    Returns:
      An array of floats of shape ``(n - 1, n)``, or ``(n, n)`` if `full`.

    Examples:

      >>> jax.scipy.linalg.helmert(3).round(3)
      Array([[ 0.707     , -0.707     ,  0.        ],
             [ 0.40800002,  0.40800002, -0.81600004]], dtype=float32)
    """
    n = _size("helmert", n, 1)
    i = np.arange(n, dtype=np.float64)
    out = np.tril(np.ones((n, n)), -1) - np.diag(i)
    out[0] = 1
    out /= np.sqrt(np.where(i == 0, n, i * (i + 1)))[:, None]
    return jnp.asarray(out if full else out[1:], dtypes.default_float_dtype())


def hilbert(n: int) -> Array:
    """Hilbert's matrix, ``1 / (i + j + 1)``.

    Examples:

      >>> jax.scipy.linalg.hilbert(2).round(3)
      Array([[1.   , 0.5  ],
             [0.5  , 0.333]], dtype=float32)
    """
    i = np.arange(_size("hilbert", n))
    return jnp.asarray(1.0 / (i[:, None] + i + 1), dtypes.default_float_dtype())


def invhilbert(n: int) -> Array:
    """The inverse of Hilbert's matrix, from exact integers.

    Examples:

      >>> jax.scipy.linalg.invhilbert(2)
      Array([[ 4., -6.],
             [-6., 12.]], dtype=float32)
    """
    n = _size("invhilbert", n)

    def element(i, j):
        return (
            (-1) ** (i + j)
            * (i + j + 1)
            * math.comb(n + i, n - j - 1)
            * math.comb(n + j, n - i - 1)
            * math.comb(i + j, i) ** 2
        )

    out = [[float(element(i, j)) for j in range(n)] for i in range(n)]
    return jnp.asarray(np.reshape(np.array(out, np.float64), (n, n)), dtypes.default_float_dtype())


def _pascal(n: int, kind: str | None, name: str, inverse: bool) -> Array:
    kind = "symmetric" if kind is None else kind
    one_of(name, "kind", kind, ("symmetric", "lower", "upper"))
    n = _size(name, n)
    # Exact integers; the dtype then rounds them.
    lower = np.array(
        [[math.comb(i, j) * ((-1) ** (i + j) if inverse else 1) for j in range(n)] for i in range(n)], object
    )
    lower = lower.reshape(n, n)
    out = {
        "lower": lambda: lower,
        "upper": lambda: lower.T,
        "symmetric": lambda: lower.T @ lower if inverse else lower @ lower.T,
    }
    return jnp.asarray(out[kind]().astype(np.float64), dtypes.default_float_dtype())


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's triangle as a matrix.

    Args:
      n: the number of rows.
      kind: ``"lower"``, ``"upper"``, or their product, ``"symmetric"`` (the default).

    Raises:
      ValueError: another kind.

    Examples:

      >>> jax.scipy.linalg.pascal(3)
      Array([[1., 1., 1.],
             [1., 2., 3.],
             [1., 3., 6.]], dtype=float32)
    """
    return _pascal(n, kind, "pascal", False)


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal`.

    Args:
      n, kind: as in `pascal`.

    Examples:

      >>> jax.scipy.linalg.invpascal(3)
      Array([[ 3., -3.,  1.],
             [-3.,  5., -2.],
             [ 1., -2.,  1.]], dtype=float32)
    """
    return _pascal(n, kind, "invpascal", True)


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie's matrix of a population.

    Args:
      f: the fecundities, of shape ``[..., n]``: the first row.
      s: the survivals, of shape ``[..., n - 1]``: below the diagonal.

    Returns:
      An array of shape ``[..., n, n]``.

    Raises:
      ValueError: the lengths do not fit.

    Examples:

      >>> jax.scipy.linalg.leslie(jnp.array([0., 2., 1.]), jnp.array([0.5, 0.25]))
      Array([[0.  , 2.  , 1.  ],
             [0.5 , 0.  , 0.  ],
             [0.  , 0.25, 0.  ]], dtype=float32)
    """
    f, s = promoted("leslie", f, s)
    f, s = _vector("leslie", f, 2), _vector("leslie", s)
    n = f.shape[-1]
    if s.shape[-1] != n - 1:
        raise ValueError(f"leslie: s must have one element fewer than f, got {s.shape} and {f.shape}")
    batch = jnp.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    i = np.arange(n - 1)
    out = jnp.zeros((*batch, n, n), f.dtype)
    return out.at[..., 0, :].set(f).at[..., i + 1, i].set(s)
