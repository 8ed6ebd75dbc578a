"""The uniform distribution between `loc` and ``loc + scale``."""

from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logpdf", "pdf", "ppf"]

logpdf, pdf, cdf, ppf = location_scale(
    __name__,
    "the uniform distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.uniform.logpdf(jnp.array([0.5, 2., 5.]), 1., 3.).round(3)
        Array([      -inf, -1.0990001,       -inf], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.uniform.pdf(jnp.array([0.5, 2., 5.]), 1., 3.).round(3)
        Array([0.   , 0.333, 0.   ], dtype=float32)
        """,
        "cdf": """
        >>> jax.scipy.stats.uniform.cdf(jnp.array([0.5, 2., 5.]), 1., 3.).round(3)
        Array([0.   , 0.333, 1.   ], dtype=float32)
        """,
        "ppf": """
        >>> jax.scipy.stats.uniform.ppf(jnp.array([0.25, 0.5]), 1., 3.).round(3)
        Array([1.7500001, 2.5      ], dtype=float32)
        >>> jax.scipy.stats.uniform.cdf(jax.scipy.stats.uniform.ppf(jnp.array([0.25, 0.5]), 1., 3.), 1., 3.).round(3)
        Array([0.25, 0.5 ], dtype=float32)
        """,
    },
    support=lambda: (0, 1, 0.5),
    logpdf=lambda z: 0 * z,  # NaN for NaN; z is finite inside the support
    cdf=lambda z: z,
    ppf=lambda q: q,
)
