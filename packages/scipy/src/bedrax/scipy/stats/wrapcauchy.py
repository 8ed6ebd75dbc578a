"""The wrapped Cauchy distribution of angles in [0, 2 pi]."""

import math

import bedrax.numpy as jnp
from bedrax.scipy.stats.families import location_scale

__all__ = ["logpdf", "pdf"]


def _logpdf(x, c):
    # 1 + c^2 - 2 c cos(x), without cancellation
    spread = (1 - c) ** 2 + 4 * c * jnp.sin(x / 2) ** 2
    inside = (c > 0) & (c < 1)
    return jnp.where(inside, jnp.log1p(-c * c) - math.log(2 * math.pi) - jnp.log(spread), jnp.nan)


logpdf, pdf = location_scale(
    __name__,
    "the wrapped Cauchy distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.wrapcauchy.logpdf(jnp.array([0., 1.]), 0.5).round(3)
        Array([-0.739    , -1.7830001], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.wrapcauchy.pdf(jnp.array([0., 1.]), 0.5).round(3)
        Array([0.47700003, 0.16800001], dtype=float32)
        """,
    },
    parameters={"c": "the concentration, between 0 and 1"},
    scaled=False,
    support=lambda c: (0, 2 * math.pi, 1),
    logpdf=_logpdf,
)
