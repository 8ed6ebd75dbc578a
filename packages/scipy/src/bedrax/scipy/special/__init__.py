"""`jax.scipy.special`: special functions, elementwise.

Arguments are promoted and broadcast; integers become floats. A function without an operation in XLA is a program of
lax functions, so it is differentiated and compiled like other programs. Where differentiating the program would be
wrong or wasteful, the function has the derivative from the Digital Library of Mathematical Functions
(https://dlmf.nist.gov).
"""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        ".gamma_family": (
            "bernoulli",
            "beta",
            "betainc",
            "betaln",
            "comb",
            "digamma",
            "factorial",
            "gamma",
            "gammainc",
            "gammaincc",
            "gammaln",
            "gammasgn",
            "loggamma",
            "multigammaln",
            "poch",
            "polygamma",
            "zeta",
        ),
        ".error_functions": (
            "dawsn",
            "erf",
            "erfc",
            "erfcinv",
            "erfcx",
            "erfinv",
            "fresnel",
            "log_ndtr",
            "ndtr",
            "ndtri",
            "owens_t",
            "wofz",
        ),
        ".entropies": (
            "boxcox",
            "boxcox1p",
            "entr",
            "expit",
            "kl_div",
            "log_softmax",
            "logit",
            "logsumexp",
            "rel_entr",
            "softmax",
            "xlog1py",
            "xlogy",
        ),
        ".integrals": ("exp1", "expi", "expn", "sici", "spence"),
        ".bessel": ("bessel_jn", "i0", "i0e", "i1", "i1e"),
        ".hypergeometric": ("hyp1f1", "hyp2f1"),
        ".harmonics": ("lpmn", "lpmn_values", "sph_harm_y"),
    },
)
