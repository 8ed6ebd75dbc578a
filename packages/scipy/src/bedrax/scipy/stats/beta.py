"""The beta distribution."""

from bedrax.scipy import special
from bedrax.scipy.stats.families import location_scale

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

logpdf, pdf, cdf, logcdf, sf, logsf = location_scale(
    __name__,
    "the beta distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.beta.logpdf(jnp.array([0.2, 0.5]), 2., 3.).round(3)
        Array([0.42900002, 0.40500003], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.beta.pdf(jnp.array([0.2, 0.5]), 2., 3.).round(3)
        Array([1.536    , 1.5000001], dtype=float32)
        """,
        "cdf": """
        >>> jax.scipy.stats.beta.cdf(jnp.array([0.2, 0.5]), 2., 3.).round(3)
        Array([0.18100001, 0.68700004], dtype=float32)
        """,
        "logcdf": """
        >>> jax.scipy.stats.beta.logcdf(jnp.array([0.2, 0.5]), 2., 3.).round(3)
        Array([-1.71      , -0.37500003], dtype=float32)
        """,
        "sf": """
        >>> jax.scipy.stats.beta.sf(jnp.array([0.2, 0.5]), 2., 3.).round(3)
        Array([0.81900007, 0.31300002], dtype=float32)
        """,
        "logsf": """
        >>> jax.scipy.stats.beta.logsf(jnp.array([0.2, 0.5]), 2., 3.).round(3)
        Array([-0.19900002, -1.1630001 ], dtype=float32)
        """,
    },
    parameters={"a": "the first shape, positive", "b": "the second shape, positive"},
    support=lambda a, b: (0, 1, 0.5),
    logpdf=lambda z, a, b: special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b),
    cdf=lambda z, a, b: special.betainc(a, b, z),
    sf=lambda z, a, b: special.betainc(b, a, 1 - z),
)
