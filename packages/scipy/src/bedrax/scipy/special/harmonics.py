"""Spherical harmonics."""

from __future__ import annotations

import math

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core import dtypes, errors, tracing
from bedrax.core.array import Array
from bedrax.numpy.arguments import array, concrete_int
from bedrax.scipy.defining import ArrayLike, floats

__all__ = ["sph_harm_y"]


def sph_harm_y(
    n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, diff_n: int | None = None, n_max: int | None = None
) -> Array:
    r"""Spherical harmonics :math:`Y_n^m(\theta, \phi)`, orthonormal, with the phase of Condon and Shortley.

    Args:
      n: degrees, integers >= 0.
      m: orders, integers; where ``abs(m) > n`` the result is 0.
      theta: polar angles, in [0, pi].
      phi: azimuths, in [0, 2 pi].
      diff_n: not supported; differentiate the function instead.
      n_max: a bound of `n`. Without it, `n` must be known when tracing. Where ``n > n_max``, the result is NaN.

    Returns:
      Complex array of the common shape of the arguments.

    Raises:
      NotImplementedError: `diff_n` is given.
      TypeError: `n` or `m` is not of integer dtype.
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: the argument diff_n is not supported; use grad or jvp.")
    n, m = array("sph_harm_y", n), array("sph_harm_y", m)
    for name, x in (("n", n), ("m", m)):
        if not dtypes.is_integer(x.dtype):
            raise TypeError(f"sph_harm_y: {name} must be of integer dtype, got {x.dtype}")
    theta, phi = floats("sph_harm_y", theta, phi)
    if n_max is None:
        n_max = int(np.max(np.asarray(_known(n)), initial=0))
    n_max = concrete_int(n_max, "The argument n_max of sph_harm_y must be known when tracing.")
    n, m, theta, phi = jnp.broadcast_arrays(n, m, theta, phi)
    order = abs(m)
    cos, sin = jnp.cos(theta), jnp.sin(theta)
    # Normalized associated Legendre functions: P_m^m, then upward in the degree (DLMF 14.10.3). They vanish below m.
    one = lax.full_like(theta, 1)
    diagonal = one * (1 / math.sqrt(4 * math.pi))
    before, value = lax.full_like(theta, 0), jnp.where(order == 0, diagonal, 0)
    out = jnp.where(n == 0, value, 0)
    am = order.astype(theta.dtype)
    for k in range(1, n_max + 1):
        diagonal = diagonal * (-math.sqrt((2 * k + 1) / (2 * k))) * sin
        above = k > order
        gap = jnp.where(above, k * k - am * am, 1)
        a = jnp.sqrt((4 * k * k - 1) / gap)
        inner = jnp.where(above, (k - 1) ** 2 - am * am, 0)
        b = jnp.sqrt(jnp.maximum(inner, 0) / max(4 * (k - 1) ** 2 - 1, 1))
        upward = a * (cos * value - b * before)
        before, value = value, jnp.where(above, upward, jnp.where(order == k, diagonal, 0))
        out = jnp.where(n == k, value, out)
    out = jnp.where(n > n_max, jnp.nan, out)
    negative = (m < 0) & (order % 2 == 1)
    out = jnp.where(negative, -out, out)
    angle = m.astype(phi.dtype) * phi
    return lax.complex(out * jnp.cos(angle), out * jnp.sin(angle))


def _known(n):
    if isinstance(n, tracing.Tracer):
        value = n.concrete()
        if value is None:
            raise errors.ConcretizationTypeError(n, "sph_harm_y: pass n_max, a bound of n, when n is traced.")
        return value
    return n
