"""Spherical harmonics."""

from __future__ import annotations

import math

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.autodiff import jvp
from bedrax.core import dtypes, errors, tracing
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import array, concrete_int
from bedrax.scipy.defining import floats

__all__ = ["lpmn", "lpmn_values", "sph_harm_y"]


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

    Examples:

      >>> order = jax.scipy.special.sph_harm_y(
      ...     jnp.array([1]), jnp.array([0]), jnp.array([0.]), jnp.array([0.]), n_max=1
      ... )
      >>> order.real.round(3)
      Array([0.48900002], dtype=float32)
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


@one_program(static=("m", "n", "is_normalized"))
def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    r"""Associated Legendre functions of all orders up to `m` and degrees up to `n`, with Condon and Shortley's phase.

    Args:
      m, n: the greatest order and degree, known when tracing.
      z: floats of shape (k,), in [-1, 1].
      is_normalized: whether :math:`P_l^m` has the factor that makes spherical harmonics orthonormal.

    Returns:
      Array of shape (m + 1, n + 1, k); 0 where the order is greater than the degree.

    Examples:

      >>> values = jax.scipy.special.lpmn_values(1, 1, jnp.array([0.5]), is_normalized=False)
      >>> values[..., 0].round(2)
      Array([[ 1.  ,  0.5 ],
             [ 0.  , -0.87]], dtype=float32)
    """
    (z,) = floats("lpmn_values", z)
    if z.ndim != 1:
        raise ValueError(f"lpmn_values: z must have one axis, got shape {z.shape}")
    m, n = (concrete_int(x, "The arguments m and n of lpmn_values must be known when tracing.") for x in (m, n))
    order, z = np.arange(m + 1)[:, None], z[None]
    sin = jnp.sqrt((1 - z) * (1 + z))
    diagonal = lax.full_like(z, 1 / math.sqrt(4 * math.pi))
    before = value = jnp.where(order == 0, diagonal, 0)
    rows = [value]
    for k in range(1, n + 1):  # as above, for all orders together
        diagonal = diagonal * (-math.sqrt((2 * k + 1) / (2 * k))) * sin
        with np.errstate(divide="ignore", invalid="ignore"):
            up = np.where(order < k, np.sqrt((4 * k * k - 1) / (k * k - order**2)), 0)
            back = np.where(order < k - 1, np.sqrt(((k - 1) ** 2 - order**2) / (4 * (k - 1) ** 2 - 1)), 0)
        up, back = (c.astype(z.dtype) for c in (up, back))
        before, value = value, jnp.where(order == k, diagonal, up * (z * value - back * before))
        rows.append(value)
    out = jnp.stack(rows, 1)
    if is_normalized:
        return out
    logs = [
        [math.lgamma(k + i + 1) - math.lgamma(k - i + 1) if i <= k else 0 for k in range(n + 1)] for i in range(m + 1)
    ]
    factor = np.sqrt(4 * math.pi / (2 * np.arange(n + 1) + 1)) * np.exp(0.5 * np.array(logs))
    return out * factor.astype(z.dtype)[:, :, None]


@one_program(static=("m", "n"))
def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """`lpmn_values`, not normalized, and their derivatives with respect to `z`.

    Args:
      m, n: the greatest order and degree, known when tracing.
      z: floats of shape (k,), in [-1, 1].

    Returns:
      Two arrays of shape (m + 1, n + 1, k).

    Examples:

      >>> values, derivatives = jax.scipy.special.lpmn(2, 2, jnp.array([0.6]))
      >>> values[:, :, 0].round(2)
      Array([[ 1.  ,  0.6 ,  0.04],
             [ 0.  , -0.8 , -1.44],
             [ 0.  ,  0.  ,  1.92]], dtype=float32)
    """
    (z,) = floats("lpmn", z)
    return jvp(lambda z: lpmn_values(m, n, z, False), (z,), (lax.full_like(z, 1),))
