"""Functions of matrices: exponential, square root, and others through the Schur form."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.autodiff import jvp
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.codes import coded
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax.matrices import adjoint
from bedrax.lax.primitives import linalg as factor
from bedrax.scipy.linalg.arguments import complexified, matrices

__all__ = ["expm", "expm_frechet", "funm", "sqrtm"]


def _matmul(x, y):
    return jnp.matmul(x, y, precision="highest")


def _pade(m: int) -> list[float]:
    """Coefficients of the numerator of the diagonal Pade approximant of exp of degree m; the constant one is 1."""
    out = [1.0]
    for k in range(1, m + 1):
        out.append(out[-1] * (m - k + 1) / (k * (2 * m - k + 1)))
    return out


# Degrees of the approximant, and the 1-norms up to which each is exact to rounding (Higham 2005, table 2.3 and section 2).
# A larger norm is halved until the last of them is enough.
_SINGLE = {3: 0.4258730016922831, 5: 1.880152677804762, 7: 3.925724783138660}
_DOUBLE = {
    3: 0.01495585217958292,
    5: 0.2539398330063230,
    7: 0.9504178996162932,
    9: 2.097847961257068,
    13: 5.371920351148152,
}


def _halves(m: int, a2: Array) -> tuple[Array, Array]:
    """The even part of the numerator of degree m and the odd part divided by `a`, from the square of `a`.

    Degree 13 is evaluated from the powers 2, 4 and 6 (Higham 2005, equations 2.12 and 2.13), others from all even powers.
    """
    c = _pade(m)
    powers = [jnp.broadcast_to(jnp.eye(a2.shape[-1], dtype=a2.dtype), a2.shape), a2]
    while len(powers) < (4 if m == 13 else (m + 1) // 2):
        powers.append(_matmul(powers[-1], a2))
    even, odd = (functools.reduce(operator.add, (c[2 * i + k] * x for i, x in enumerate(powers))) for k in (0, 1))
    if m == 13:
        high = (functools.reduce(operator.add, (c[2 * i + 6 + k] * powers[i] for i in (1, 2, 3))) for k in (0, 1))
        even, odd = (low + _matmul(powers[3], x) for low, x in zip((even, odd), high, strict=True))
    return even, odd


@one_program(static=("upper_triangular", "max_squarings"), everywhere=True)
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The matrix exponential, by scaling and squaring (Higham 2005).

    The largest 1-norm of the matrices chooses the degree of the Pade approximant: 3, 5, 7, 9 or 13 for float64, 3, 5 or 7 for
    float32. A small norm needs fewer products of matrices.

    Args:
      A: of shape ``[..., n, n]``.
      upper_triangular: whether A is known to be upper triangular; solving is then cheaper.
      max_squarings: where more squarings are needed (the norm is above about ``4 * 2**max_squarings``), the result
        is NaN.

    Raises:
      ValueError: A is not square.

    Examples:

      >>> jax.scipy.linalg.expm(jnp.array([[0., 1.], [0., 0.]]))
      Array([[1., 1.],
             [0., 1.]], dtype=float32)
    """
    (A,) = matrices("expm", A)
    if not dims.definitely_equal(*A.shape[-2:]):
        raise ValueError(coded("BX-SQUARE", f"expm takes square matrices, got shape {A.shape}"))
    dtype = A.dtype
    if dtypes.finfo(dtype).bits < 32:
        return expm(A.astype(np.float32), upper_triangular=upper_triangular, max_squarings=max_squarings).astype(dtype)
    degrees = _SINGLE if dtypes.finfo(dtype).bits == 32 else _DOUBLE
    *smaller, largest = degrees.values()
    norm = lax.stop_gradient(jnp.max(jnp.sum(abs(A), axis=-2), axis=-1, initial=0))
    squarings = jnp.maximum(jnp.ceil(jnp.log2(jnp.where(norm > 0, norm, 1) / largest)), 0)
    scaled = A * jnp.exp2(-squarings)[..., None, None].astype(dtype)
    # One degree for all matrices: a larger one is exact for a smaller norm, too.
    choice = jnp.sum(jnp.max(norm, initial=0) > np.array(smaller, norm.dtype), dtype=np.int32)
    # Under vmap all branches run. The compiler computes the powers that they share once.
    even, odd = lax.switch(choice, [functools.partial(_halves, m) for m in degrees], _matmul(scaled, scaled))
    odd = _matmul(scaled, odd)
    if upper_triangular:
        out = factor.triangular_solve(even - odd, even + odd, left_side=True, lower=False)
    else:
        out = jnp.linalg.solve(even - odd, even + odd)
    most = jnp.max(squarings, initial=0)

    def square(i, x):
        step = jnp.asarray(i, norm.dtype)  # under disable_jit, a Python number
        again = lambda x: jnp.where((step < squarings)[..., None, None], _matmul(x, x), x)
        return lax.cond(step < most, again, lambda x: x, x)

    squared = lambda x: lax.fori_loop(np.int32(0), np.int32(max_squarings), square, x)
    out = lax.cond(most > 0, squared, lambda x: x, out)  # without squarings, no step copies the matrix
    valid = squarings <= max_squarings
    return jnp.where(valid[..., None, None], out, jnp.nan)


def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> tuple[Array, ...]:
    """The derivative of the matrix exponential at A in the direction E.

    Args:
      A, E: of shape ``[..., n, n]``.
      method: None, ``"SPS"`` or ``"blockEnlarge"``, with equal results: the derivative of `expm` by forward-mode
        differentiation.
      compute_expm: return ``(expm(A), derivative)``; otherwise the derivative.

    Examples:

      >>> x, direction = jnp.array([[0., 1.], [0., 0.]]), jnp.eye(2)
      >>> exponential, derivative = jax.scipy.linalg.expm_frechet(x, direction)
      >>> derivative.round(3)
      Array([[1., 1.],
             [0., 1.]], dtype=float32)
    """
    if method not in (None, "SPS", "blockEnlarge"):
        raise ValueError(f"expm_frechet: method is 'SPS' or 'blockEnlarge', got {method!r}")
    A, E = matrices("expm_frechet", A, E, square=True)
    if A.shape != E.shape:
        raise ValueError(f"expm_frechet: expected A and E of one shape, got {A.shape} and {E.shape}")
    value, derivative = jvp(expm, (A,), (E,))
    return (value, derivative) if compute_expm else derivative


def _by_diagonals(step: Callable, start: Array) -> Array:
    """Fill the diagonals above the main one, one after the other: ``step(F)`` makes all elements from those before."""
    n = start.shape[-1]
    distance = np.arange(n, dtype=np.int32)[None] - np.arange(n, dtype=np.int32)[:, None]
    return lax.fori_loop(np.int32(1), np.int32(n), lambda d, F: jnp.where(distance == d, step(F), F), start)


@one_program(everywhere=True)
def _sqrtm(a):
    t, z = factor.schur(complexified(a))
    d = jnp.diagonal(t, axis1=-2, axis2=-1)
    if not dtypes.is_complex(a.dtype):
        # Of a real matrix, a negative eigenvalue must not fall on either side of the cut by rounding.
        rounding = (
            8 * t.shape[-1] * float(dtypes.finfo(t.dtype).eps) * jnp.max(abs(d), axis=-1, keepdims=True, initial=0)
        )
        d = jnp.where(abs(d.imag) <= rounding, d.real.astype(d.dtype), d)
    d = jnp.sqrt(d)
    sums = d[..., :, None] + d[..., None, :]
    # Bjorck and Hammarling 1983: (R R)_ij = t_ij for the element (i, j) gives r_ij, since r_ii + r_jj multiplies it.
    both_zero = sums == 0
    divisor = jnp.where(both_zero, 1, sums)

    def step(r):
        rest = t - _matmul(r, r)
        return jnp.where(both_zero, jnp.where(rest == 0, 0, jnp.nan), rest / divisor)

    r = _by_diagonals(step, jnp.eye(t.shape[-1], dtype=t.dtype) * d[..., None, :])
    return _matmul(_matmul(z, r), adjoint(z))


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square root of a matrix, by the Schur form, on CPU.

    Args:
      A: of shape ``[..., n, n]``.
      blocksize: 1; the blocked method is not implemented.

    Returns:
      A complex array; NaN where a singular matrix has no root.

    Examples:

      >>> jax.scipy.linalg.sqrtm(jnp.array([[4., 0.], [0., 9.]])).real.round(3)
      Array([[2.       , 0.       ],
             [0.       , 3.0000002]], dtype=float32)
    """
    if blocksize > 1:
        raise NotImplementedError("sqrtm: the blocked method is not implemented; leave blocksize at 1.")
    (A,) = matrices("sqrtm", A, square=True)
    return _sqrtm(A)


def funm(A: ArrayLike, func: Callable[[Array], Array], disp: bool = True) -> Array | tuple[Array, ...]:
    """A function of a matrix, by the Schur form and Parlett's recurrence, on CPU.

    It is inaccurate where eigenvalues lie close together.

    Args:
      A: of shape ``[n, n]``.
      func: the function, of an array of complex numbers, elementwise.
      disp: return the result alone; nothing is printed. False: return ``(result, estimate of the relative error)``.

    Returns:
      A complex array, or a pair.

    Examples:

      >>> jax.scipy.linalg.funm(jnp.array([[1., 0.], [0., 2.]]), jnp.exp, disp=False)[0].real.round(3)
      Array([[2.7180002, 0.       ],
             [0.       , 7.3890004]], dtype=float32)
    """
    (A,) = matrices("funm", A, square=True)
    if A.ndim != 2:
        raise ValueError(f"funm: expected a square matrix, got shape {A.shape}; use vmap for batches.")
    t, z = factor.schur(complexified(A))
    d = jnp.diagonal(t)
    n = t.shape[-1]
    start = jnp.zeros_like(t).at[jnp.arange(n), jnp.arange(n)].set(jnp.asarray(func(d), t.dtype))
    gaps = d[:, None] - d[None, :]
    equal = gaps == 0
    divisor = jnp.where(equal, 1, gaps)

    def step(f):  # f t = t f (Golub and Van Loan, 9.1.4); elements for equal eigenvalues are left undivided
        return (_matmul(f, t) - _matmul(t, f)) / divisor

    f = _by_diagonals(step, start)
    out = _matmul(_matmul(z, f), adjoint(z))
    if disp:
        return out
    limits = dtypes.finfo(t.dtype)
    eps, above = float(limits.eps), jnp.triu(jnp.ones((n, n), bool), 1)
    least = jnp.min(abs(gaps), where=above, initial=float(limits.max))
    spread = jnp.max(jnp.sum(abs(jnp.triu(t, 1)), axis=0), initial=0)
    error = jnp.clip(eps / jnp.where(least == 0, eps, least) * spread, eps, 1)
    return out, jnp.where(jnp.all(jnp.isfinite(out)), error, jnp.inf)
