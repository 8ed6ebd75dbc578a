"""`jax.scipy.stats`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.stats": (
        "gaussian_kde", "mode", "rankdata", "sem",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES, (
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gennorm",
    "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial", "multivariate_normal", "nbinom",
    "norm", "pareto", "poisson", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
))  # fmt: skip

if TYPE_CHECKING:
    from bedrax.scipy.stats import (
        gaussian_kde as gaussian_kde, mode as mode, rankdata as rankdata, sem as sem,
    )  # fmt: skip
    from jax.scipy.stats import bernoulli as bernoulli
    from jax.scipy.stats import beta as beta
    from jax.scipy.stats import betabinom as betabinom
    from jax.scipy.stats import binom as binom
    from jax.scipy.stats import cauchy as cauchy
    from jax.scipy.stats import chi2 as chi2
    from jax.scipy.stats import dirichlet as dirichlet
    from jax.scipy.stats import expon as expon
    from jax.scipy.stats import gamma as gamma
    from jax.scipy.stats import gennorm as gennorm
    from jax.scipy.stats import geom as geom
    from jax.scipy.stats import gumbel_l as gumbel_l
    from jax.scipy.stats import gumbel_r as gumbel_r
    from jax.scipy.stats import laplace as laplace
    from jax.scipy.stats import logistic as logistic
    from jax.scipy.stats import multinomial as multinomial
    from jax.scipy.stats import multivariate_normal as multivariate_normal
    from jax.scipy.stats import nbinom as nbinom
    from jax.scipy.stats import norm as norm
    from jax.scipy.stats import pareto as pareto
    from jax.scipy.stats import poisson as poisson
    from jax.scipy.stats import t as t
    from jax.scipy.stats import truncnorm as truncnorm
    from jax.scipy.stats import uniform as uniform
    from jax.scipy.stats import vonmises as vonmises
    from jax.scipy.stats import wrapcauchy as wrapcauchy
