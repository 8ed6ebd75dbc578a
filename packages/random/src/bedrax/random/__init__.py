"""Random numbers without hidden state: keys and samplers, each loaded on first use."""

import bedrax.numpy
import bedrax.numpy_backend  # noqa: F401  # it evaluates, unless a backend of a higher rank is installed
from bedrax.core import offers as _offers
from bedrax.core.lazy import attach

_offers.offer("dtypes key", "bedrax.random.key_array:dtype_of_printed_name")
_offers.offer("key reuse", "bedrax.random.reuse:check")

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        ".continuous": (
            "cauchy",
            "double_sided_maxwell",
            "exponential",
            "gumbel",
            "laplace",
            "logistic",
            "lognormal",
            "maxwell",
            "multivariate_normal",
            "normal",
            "orthogonal",
            "pareto",
            "rayleigh",
            "triangular",
            "truncated_normal",
            "wald",
            "weibull_min",
        ),
        ".counts": ("binomial", "geometric", "multinomial", "poisson"),
        ".discrete": ("categorical", "choice", "permutation"),
        ".gamma_family": (
            "ball",
            "beta",
            "chisquare",
            "dirichlet",
            "f",
            "gamma",
            "generalized_normal",
            "loggamma",
            "random_gamma_p",
            "t",
        ),
        ".keys": (
            "Key",
            "PRNGKey",
            "bits",
            "clone",
            "fold_in",
            "key",
            "key_data",
            "key_dtype",
            "key_impl",
            "split",
            "wrap_key_data",
        ),
        ".uniforms": ("bernoulli", "rademacher", "randint", "uniform"),
    },
)
