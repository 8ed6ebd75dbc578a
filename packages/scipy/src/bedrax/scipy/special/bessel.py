"""Bessel functions."""

from __future__ import annotations

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import concrete_int
from bedrax.scipy.defining import floats, special, widened

__all__ = ["bessel_jn", "i0", "i0e", "i1", "i1e"]


def i0e(x: ArrayLike) -> Array:
    """``exp(-abs(x)) i0(x)``.

    Examples:

      >>> jax.scipy.special.i0e(jnp.array([0., 100.])).round(3)
      Array([1.  , 0.04], dtype=float32)
    """
    return lax.bessel_i0e(*floats("i0e", x))


def i1e(x: ArrayLike) -> Array:
    """``exp(-abs(x)) i1(x)``.

    Examples:

      >>> jax.scipy.special.i1e(jnp.array([0., 100.])).round(3)
      Array([0.  , 0.04], dtype=float32)
    """
    return lax.bessel_i1e(*floats("i1e", x))


@special(lambda out, x: i1(x))
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 0.

    Examples:

      >>> jax.scipy.special.i0(jnp.array([0., 1.])).round(3)
      Array([1.   , 1.266], dtype=float32)
    """
    return jnp.exp(abs(x)) * lax.bessel_i0e(x)


def _i1_slope(out, x):
    ratio = jnp.where(x == 0, 0.5, out / jnp.where(x == 0, 1, x))
    return i0.formula(x) - ratio


@special(_i1_slope)
def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 1.

    Examples:

      >>> jax.scipy.special.i1(jnp.array([0., 1.])).round(3)
      Array([0.   , 0.565], dtype=float32)
    """
    return jnp.exp(abs(x)) * lax.bessel_i1e(x)


def _miller(z, v: int, start: int):
    """``J_0 ... J_v`` by backward recurrence from `start`, normalized by ``J_0 + 2 (J_2 + J_4 + ...) = 1``."""
    one, least = (z.dtype.type(x) for x in (1, float(np.finfo(z.dtype).tiny) ** 0.5))
    small = abs(z) < 1e-3  # the recurrence would overflow: two terms of the power series are enough
    y = jnp.where(small, 1, z)
    orders = np.arange(start, 0, -1).astype(z.dtype)

    def step(carry, k):
        high, low, total = carry  # J_{k+1}, J_k and the sum, to one common factor
        down = 2 * k / y * low - high
        even = ((k - 1) % 2 == 0) & (k > 1)
        total = total + jnp.where(even, 2 * down, 0)
        big = abs(down) > 1 / least
        factor = jnp.where(big, least, one)
        return (low * factor, down * factor, total * factor), (down * factor, factor)

    zero = lax.full_like(y, 0)
    (_, j0, total), (values, factors) = lax.scan(step, (zero, lax.full_like(y, least), zero), orders)
    # The values stored before a rescaling lack the later factors.
    later = jnp.flip(jnp.cumprod(jnp.flip(factors, 0), axis=0), 0) / factors
    values = jnp.flip(values * later, 0)[: v + 1] / (total + j0)[None]
    half = jnp.where(small, z, 0) / 2
    term, rows = lax.full_like(z, 1), []
    for k in range(v + 1):
        rows.append(term * (1 - half * half / (k + 1)))
        term = term * half / (k + 1)
    return jnp.where(small[None], jnp.stack(rows), values)


@one_program(static=("v", "n_iter"), everywhere=True)
def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind, of the orders 0 to v.

    Args:
      z: floats.
      v: the highest order, a Python integer >= 0.
      n_iter: the order where the backward recurrence begins (at least ``v + 16`` is taken). It must exceed ``abs(z)``
        by enough for the function of that order to be negligible: about ``abs(z) + 6 abs(z)**(1/3) + 15``.

    Returns:
      An array of shape ``(v + 1, *z.shape)``.

    Examples:

      >>> jax.scipy.special.bessel_jn(jnp.array([1.]), v=2).round(3)
      Array([[0.76500005],
             [0.44000003],
             [0.115     ]], dtype=float32)
    """
    v = concrete_int(v, "The argument v of bessel_jn determines a shape.")
    if v < 0:
        raise ValueError(f"bessel_jn: v must not be negative, got {v}")
    (z,) = floats("bessel_jn", z)
    return widened(lambda z: _miller(z, v, max(int(n_iter), v + 16)))(z)
