"""Polynomials as vectors of coefficients, the one of the highest power first."""

from __future__ import annotations

import bedrax.numpy as jnp
import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import array, arrays, concrete_int, inexact, promoted

__all__ = ["poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "roots"]


@one_program
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with the given zeros, or of the characteristic polynomial of a square matrix.

    Raises:
      ValueError: neither a vector nor a square matrix.

    Examples:

      >>> jnp.poly(jnp.array([1., 2.]))
      Array([ 1., -3.,  2.], dtype=float32)
    """
    (zeros,) = inexact("poly", seq_of_zeros)
    if zeros.shape == (0,):
        return jnp.ones((), zeros.dtype)
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1]:
        zeros = jnp.linalg.eigvals(zeros)
    if zeros.ndim > 1:
        raise ValueError(f"input must be 1d or non-empty square 2d array, got shape {zeros.shape}")
    out = jnp.ones((1,), zeros.dtype)
    for z in jnp.atleast_1d(zeros):  # the first stays 1 for all zeros
        out = jnp.concatenate([out[:1], out[1:] - z * out[:-1], -z * out[-1:]])
    return out


def _trimmed(x: Array, name: str) -> Array:
    """The coefficients without leading zeros, which must be known."""
    if not x.shape[0]:
        return x
    nonzero = x != 0
    first = concrete_int(
        jnp.where(jnp.any(nonzero), jnp.argmax(nonzero), x.shape[0]),
        f"The number of leading zeros determines the shape of the result of jnp.{name}(); under jit, call it with"
        " trimming turned off.",
    )
    return x[first:]


def _padded_sum(name, a1, a2, combine):
    a1, a2 = promoted(name, a1, a2)
    longer = max(a1, a2, key=lambda a: (a.shape[0], a.ndim)).shape  # the result has this shape
    rows = lambda a: jnp.broadcast_to(a, (a.shape[0], *longer[1:]))
    pad = lambda a: jnp.concatenate([np.zeros((longer[0] - a.shape[0], *longer[1:]), a.dtype), rows(a)])
    return combine(pad(a1), pad(a2))


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    Args:
      a1, a2: coefficients, the highest power first.

    Returns:
      The coefficients of the sum, as many as the longer operand has.

    Examples:

      >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([10, 20]))
      Array([ 1, 12, 23], dtype=int32)
    """
    return _padded_sum("polyadd", a1, a2, lax.add)


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    Args:
      a1, a2: coefficients, the highest power first.

    Returns:
      The coefficients of the difference, as many as the longer operand has.

    Examples:

      >>> jnp.polysub(jnp.array([1, 2, 3]), jnp.array([10, 20]))
      Array([  1,  -8, -17], dtype=int32)
    """
    return _padded_sum("polysub", a1, a2, lax.sub)


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Args:
      a1, a2: coefficients.
      trim_leading_zeros: remove leading zeros of the operands first, as NumPy does; needs concrete arrays.

    Examples:

      >>> jnp.polymul(jnp.array([1, 1]), jnp.array([1, -1]))
      Array([ 1.,  0., -1.], dtype=float32)
    """
    a1, a2 = inexact("polymul", a1, a2)
    if trim_leading_zeros and (a1.shape[0] > 1 or a2.shape[0] > 1):
        a1, a2 = (_nonempty(_trimmed(a, "polymul")) for a in (a1, a2))
    if a1.shape[0] == 0 or a2.shape[0] == 0:
        a1, a2 = _nonempty(a1), _nonempty(a2)
    return jnp.convolve(a1, a2)


def _nonempty(a: Array) -> Array:
    return a if a.shape[0] else jnp.zeros((1,), a.dtype)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Quotient and remainder of two polynomials.

    Args:
      u, v: coefficients of dividend and divisor.
      trim_leading_zeros: remove leading zeros of the remainder, as NumPy does; needs concrete arrays. Otherwise it
        is as long as the dividend.

    Examples:

      >>> quotient, remainder = jnp.polydiv(jnp.array([1., -3., 2.]), jnp.array([1., -1.]))
      >>> quotient
      Array([ 1., -2.], dtype=float32)
      >>> remainder
      Array([0., 0., 0.], dtype=float32)
    """
    u, v = inexact("polydiv", u, v)
    n, m = u.shape[0], v.shape[0]
    rest = u
    quotient = []
    for k in range(max(n - m + 1, 0)):
        q = rest[k] / v[0]
        quotient.append(q)
        rest = rest.at[k : k + m].add(-q * v)
    quotient = jnp.stack(quotient) if quotient else jnp.zeros((1,), u.dtype)
    return quotient, (_trimmed(rest, "polydiv") if trim_leading_zeros else rest)


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The m-th derivative.

    Args:
      p: coefficients, the highest power first; integers become floats.
      m: the order of the derivative, a known int.

    Returns:
      The coefficients of the derivative: `m` fewer, or none.

    Raises:
      ValueError: `m` is negative.

    Examples:

      >>> jnp.polyder(jnp.array([1., 2., 3.]))
      Array([2., 2.], dtype=float32)
    """
    (p,) = inexact("polyder", p)
    m = dims.integer(m, "m")
    if m < 0:
        raise ValueError(f"Order of derivative must be positive, got m={m}")
    for _ in range(m):
        n = p.shape[0]
        if n < 2:
            return jnp.zeros((0,), p.dtype)
        p = p[:-1] * np.arange(n - 1, 0, -1).astype(p.dtype)
    return p


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The m-th antiderivative.

    Args:
      p: coefficients, the highest power first; integers become floats.
      m: how many times to integrate, a known int.
      k: the constants of integration: one, or `m` of them. Default: 0.

    Returns:
      The coefficients of the antiderivative: `m` more.

    Raises:
      ValueError: `m` is negative, or the number of constants is wrong.

    Examples:

      >>> jnp.polyint(jnp.array([6., 2.]))
      Array([3., 2., 0.], dtype=float32)
    """
    m = dims.integer(m, "m")
    p, k = inexact("polyint", p, 0 if k is None else array("polyint", k, 2))
    if m < 0:
        raise ValueError(f"Order of integral must be positive (see polyder), got m={m}")
    k = jnp.atleast_1d(k)
    if k.shape[0] == 1 and m > 1:
        k = jnp.broadcast_to(k, (m,))
    if k.shape != (m,) and m:
        raise ValueError(f"k must be a scalar or a rank-1 array of length 1 or m. got shape {k.shape} and m={m}")
    for i in range(m):
        n = p.shape[0]
        p = jnp.concatenate([p / np.arange(n, 0, -1).astype(p.dtype), k[i : i + 1]])
    return p


_EACH = 64  # the greatest number of coefficients that are single operands: programs do not grow with longer polynomials


@one_program(static=("unroll",))
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = None) -> Array:
    """Evaluate a polynomial at some points, by Horner's rule.

    Args:
      p: coefficients along the first axis.
      x: the points, array of any shape.
      unroll: the greatest number of coefficients evaluated without a loop; more of them are evaluated in a loop, with
        this number of steps in its body. None: 8.

    Examples:

      >>> jnp.polyval(jnp.array([2, 0, 1]), jnp.array([0, 1, 3]))
      Array([ 1,  3, 19], dtype=int32)
    """
    p, x = promoted("polyval", p, x)
    if not p.ndim:
        raise TypeError(f"polyval needs coefficients along an axis, got p of shape {p.shape}")
    n = p.shape[0]
    shape = lax.broadcast_shapes(p.shape[1:], x.shape)
    if dims.is_constant_dim(n) and n <= max(_EACH, unroll or 0) and p.dtype != bool:
        # The coefficients are operands of one primitive. Its derivative by x is one primitive, too.
        rows = [c if not c.ndim else jnp.broadcast_to(c, shape) for c in lax.unstack(lax.rev(p, (0,)))]
        return jnp.broadcast_to(
            lax.polynomial(x if not x.ndim else jnp.broadcast_to(x, shape), rows, unroll=unroll), shape
        )
    out = jnp.zeros(shape, p.dtype)
    steps = 8 if unroll is None else max(unroll, 1)
    return lax.scan(lambda y, c: (y * x + c, None), out, p, unroll=steps)[0]


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The zeros of a polynomial, as eigenvalues of its companion matrix.

    Args:
      p: coefficients, of rank 1.
      strip_zeros: remove leading zeros, and make trailing ones zeros of the polynomial; needs a concrete array.
        Otherwise as many results are NaN as there are leading zeros, the last ones.

    Raises:
      ValueError: `p` is not of rank 1.

    Examples:

      >>> jnp.roots(jnp.array([1., -3., 2.])).real
      Array([2., 1.], dtype=float32)
    """
    (p,) = inexact("roots", jnp.atleast_1d(array("roots", p)))
    if p.ndim != 1:
        raise ValueError(f"Input must be a rank-1 array, got shape {p.shape}")
    count = 0
    dtype = dtypes.to_complex_dtype(p.dtype)
    if strip_zeros:
        p = _trimmed(p, "roots(..., strip_zeros=True)")
        full = p.shape[0]
        p = lax.rev(_trimmed(lax.rev(p, (0,)), "roots(..., strip_zeros=True)"), (0,))
        count = full - p.shape[0]
    found = jnp.zeros((0,), dtype)
    n = p.shape[0]
    if n >= 2:
        lost = 0 if strip_zeros else jnp.sum(jnp.cumprod(p == 0))  # leading zeros go to the end, where they are roots
        p = p if strip_zeros else jnp.roll(p, -lost)
        companion = jnp.diag(jnp.ones((n - 2,), p.dtype), -1).at[0].set(-p[1:] / p[0])
        found = jnp.linalg.eigvals(companion)
        if not strip_zeros:
            found = found[jnp.argsort(found == 0, stable=True)]
            found = jnp.where(jnp.arange(n - 1) < n - 1 - lost, found, complex(np.nan, np.nan))
    return jnp.concatenate([found, jnp.zeros((count,), dtype)])


@one_program(static=("deg", "rcond", "full", "cov"), arrays=("w",))
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Array | tuple[Array, ...]:
    """The polynomial of degree `deg` that fits samples best, by least squares.

    Args:
      x: places, of shape ``[m]``.
      y: samples, of shape ``[m]`` or ``[m, k]``.
      deg: degree.
      rcond: share of the greatest singular value below which others are ignored; default ``len(x) * eps``.
      full: also return residuals, rank, singular values and `rcond`.
      w: weights of the residuals.
      cov: also return the covariance of the coefficients, scaled by the residuals; ``"unscaled"``: not scaled.

    Returns:
      The coefficients of shape ``[deg + 1]`` or ``[deg + 1, k]``; or a tuple with the requested parts.

    Raises:
      TypeError: shapes do not fit, or there are no samples.
      ValueError: `deg` is negative, or too few samples to scale the covariance.

    Examples:

      >>> x = jnp.array([0., 1., 2.])
      >>> jnp.polyfit(x, 2 * x + 1, deg=1).round(3)
      Array([2., 1.], dtype=float32)
    """
    deg = dims.integer(deg, "deg")
    x, y = inexact("polyfit", x, y)
    if deg < 0:
        raise ValueError(f"expected deg >= 0, got {deg}")
    if x.ndim != 1:
        raise TypeError(f"expected 1D vector for x, got shape {x.shape}")
    if x.size == 0:
        raise TypeError(f"expected non-empty vector for x, got shape {x.shape}")
    if y.ndim not in (1, 2):
        raise TypeError(f"expected 1D or 2D array for y, got shape {y.shape}")
    if x.shape[0] != y.shape[0]:
        raise TypeError(f"expected x and y to have same length, got {x.shape[0]} and {y.shape[0]}")
    eps = float(dtypes.finfo(x.dtype).eps)
    rcond = x.shape[0] * eps if rcond is None else rcond
    powers = jnp.stack([x**k for k in range(deg, -1, -1)], axis=1)
    target = y
    if w is not None:
        w = arrays("polyfit", w)[0].astype(x.dtype)
        if w.ndim != 1:
            raise TypeError(f"expected a 1-d array for weights, got shape {w.shape}")
        if w.shape[0] != y.shape[0]:
            raise TypeError(f"expected w and y to have the same length, got {w.shape[0]} and {y.shape[0]}")
        powers = powers * w[:, None]
        target = target * (w[:, None] if y.ndim == 2 else w)
    scale = jnp.sqrt(jnp.sum(powers * powers, axis=0))
    coefficients, residuals, rank, singular = jnp.linalg.lstsq(powers / scale[None], target, rcond)
    coefficients = coefficients / (scale if y.ndim == 1 else scale[:, None])
    if full:
        return coefficients, residuals, rank, singular, jnp.asarray(rcond)
    if not cov:
        return coefficients
    base = jnp.linalg.inv(powers.T @ powers / jnp.outer(scale, scale)) / jnp.outer(scale, scale)
    if isinstance(cov, str):
        if cov != "unscaled":
            raise ValueError(f"cov must be a boolean or 'unscaled', got {cov!r}")
        factor = jnp.ones((), x.dtype)
    else:
        if x.shape[0] <= deg + 1:
            raise ValueError(
                "the number of data points must exceed order to scale the covariance matrix, got"
                f" {x.shape[0]} points for deg={deg}; cov='unscaled' has no such condition"
            )
        factor = residuals / (x.shape[0] - (deg + 1))
    if y.ndim == 1:
        return coefficients, base * jnp.reshape(factor, ()).astype(base.dtype)
    return coefficients, base[:, :, None] * factor
