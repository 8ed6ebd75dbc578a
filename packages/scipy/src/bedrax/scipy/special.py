"""Special functions."""

from __future__ import annotations

from typing import Any

from bedrax import numpy as jnp
from bedrax.core import lax
from bedrax.numpy.special import logsumexp


def ndtr(x: Any):
    """The standard normal distribution function, elementwise (Abramowitz & Stegun 7.1.22)."""
    x = jnp.asarray(x)
    half = lax.mul(x, jnp.asarray(0.5**0.5, x.dtype))
    small = jnp.abs(half) < 0.5**0.5
    tail = 0.5 * lax.erfc(jnp.abs(half))
    return jnp.where(small, 0.5 * (1 + lax.erf(half)), jnp.where(half > 0, 1 - tail, tail))


def ndtri(p: Any):
    """The inverse of `ndtr`, elementwise."""
    p = jnp.asarray(p)
    return lax.mul(lax.erf_inv(2 * p - 1), jnp.asarray(2.0**0.5, p.dtype))


__all__ = ["logsumexp", "ndtr", "ndtri"]
