"""`jax.scipy.stats`: distributions, each a module, and statistics of samples."""

from __future__ import annotations

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.stats.density_estimation": ("gaussian_kde",),
    "bedrax.scipy.stats.summaries": ("mode", "rankdata", "sem"),
}
_DISTRIBUTIONS = (
    "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace logistic"
    " multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy"
).split()
__getattr__, __dir__, __all__ = attach(__name__, _HOMES, _DISTRIBUTIONS)
