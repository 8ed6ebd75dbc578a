"""Student's t distribution."""

import bedrax.numpy as jnp
from bedrax.scipy import special
from bedrax.scipy.stats.families import location_scale, log1p_of_square

__all__ = ["logpdf", "pdf"]


def _logpdf(z, df):
    half = df / 2
    # 1 / B(1/2, df/2) is the normalization; betaln does not cancel for many degrees of freedom.
    return -special.betaln(0.5, half) - 0.5 * jnp.log(df) - (half + 0.5) * log1p_of_square(z, df)


logpdf, pdf = location_scale(
    __name__,
    "Student's t distribution",
    {
        "logpdf": """
        >>> jax.scipy.stats.t.logpdf(jnp.array([0., 1.]), 4.).round(3)
        Array([-0.98100007, -1.539     ], dtype=float32)
        """,
        "pdf": """
        >>> jax.scipy.stats.t.pdf(jnp.array([0., 1.]), 4.).round(3)
        Array([0.37500003, 0.215     ], dtype=float32)
        """,
    },
    parameters={"df": "the degrees of freedom"},
    logpdf=_logpdf,
)
