"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from bedrax import numpy as jnp
from bedrax.core.promotion import promote
from bedrax.scipy import special


def _standard(name: str, x: Any, loc: Any, scale: Any):
    x, loc, scale = promote(f"norm.{name}", (x, loc, scale), True)
    return (x - loc) / scale, loc, scale


def logpdf(x: Any, loc: Any = 0, scale: Any = 1):
    """Logarithm of the density at `x`, for mean `loc` and standard deviation `scale`."""
    z, _, scale = _standard("logpdf", x, loc, scale)
    return -0.5 * (z * z + math.log(2 * math.pi)) - jnp.log(scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1):
    """Density at `x`."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1):
    """Probability of a value up to `x`."""
    return special.ndtr(_standard("cdf", x, loc, scale)[0])


def sf(x: Any, loc: Any = 0, scale: Any = 1):
    """Probability of a value above `x`."""
    return special.ndtr(-_standard("sf", x, loc, scale)[0])


def ppf(q: Any, loc: Any = 0, scale: Any = 1):
    """The value with probability `q` below it."""
    q, loc, scale = promote("norm.ppf", (q, loc, scale), True)
    return special.ndtri(q) * scale + loc


def isf(q: Any, loc: Any = 0, scale: Any = 1):
    """The value with probability `q` above it."""
    return ppf(1 - jnp.asarray(q), loc, scale)
