"""The normal distribution between two bounds."""

import math

import bedrax.numpy as jnp
from bedrax.scipy import special
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _log_difference(x, y):
    """``log(exp(x) - exp(y))`` for x >= y."""
    gap = jnp.where(y == x, 1, x - y)
    return jnp.where(y == x, -jnp.inf, x + jnp.where(gap > 0.7, jnp.log1p(-jnp.exp(-gap)), jnp.log(-jnp.expm1(-gap))))


def _log_mass(a, b):
    """The logarithm of the normal probability of [a, b], computed in the tail of the interval."""
    right = a > 0
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    one_tail = _log_difference(special.log_ndtr(high), special.log_ndtr(low))
    straddles = (low <= 0) & (high > 0)
    both = special.ndtr(jnp.where(straddles, low, -1)) + special.ndtr(-jnp.where(straddles, high, 1))
    return jnp.where(straddles, jnp.log1p(-both), one_tail)


logpdf, pdf, cdf, logcdf, sf, logsf = location_scale(
    __name__,
    "the truncated normal distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.truncnorm.logpdf(jnp.array([0., 1., 3.]), -2., 2.).round(3)
        Array([-0.87200004, -1.3720001 ,        -inf], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.truncnorm.pdf(jnp.array([0., 1., 3.]), -2., 2.).round(3)
        Array([0.418, 0.254, 0.   ], dtype=float32)
        """,
        "cdf": """
        >>> jax.scipy.stats.truncnorm.cdf(jnp.array([0., 1., 3.]), -2., 2.).round(3)
        Array([0.5       , 0.85800004, 1.        ], dtype=float32)
        """,
        "logcdf": """
        >>> jax.scipy.stats.truncnorm.logcdf(jnp.array([0., 1., 3.]), -2., 2.).round(3)
        Array([-0.693     , -0.15400001,  0.        ], dtype=float32)
        """,
        "sf": """
        >>> jax.scipy.stats.truncnorm.sf(jnp.array([0., 1., 3.]), -2., 2.).round(3)
        Array([0.5  , 0.142, 0.   ], dtype=float32)
        """,
        "logsf": """
        >>> jax.scipy.stats.truncnorm.logsf(jnp.array([0., 1., 3.]), -2., 2.).round(3)
        Array([-0.693    , -1.9490001,       -inf], dtype=float32)
        """,
    },
    parameters={
        "a": "the lower bound, before the shift and the scaling",
        "b": "the upper bound, before the shift and the scaling",
    },
    # An inner point of a half-line or a line is where the density is not too small.
    support=lambda a, b: (a, b, jnp.clip(0, a, b)),
    logpdf=lambda z, a, b: -0.5 * (z * z + math.log(2 * math.pi)) - _log_mass(a, b),
    logcdf=lambda z, a, b: _log_mass(a, z) - _log_mass(a, b),
    logsf=lambda z, a, b: _log_mass(z, b) - _log_mass(a, b),
)
