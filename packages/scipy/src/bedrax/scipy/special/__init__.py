"""`jax.scipy.special`: special functions, elementwise.

Arguments are promoted and broadcast; integers become floats. What has no operation of its own in XLA is a program of
lax functions, so it is differentiated and compiled like everything else; where differentiating the program would be
wrong or wasteful, it has the derivative from the Digital Library of Mathematical Functions (https://dlmf.nist.gov).
"""

from __future__ import annotations

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.special.gamma_family": (
        "bernoulli", "beta", "betainc", "betaln", "comb", "digamma", "factorial", "gamma", "gammainc", "gammaincc",
        "gammaln", "gammasgn", "loggamma", "multigammaln", "poch", "polygamma", "zeta",
    ),
    "bedrax.scipy.special.error_functions": (
        "dawsn", "erf", "erfc", "erfcx", "erfinv", "fresnel", "log_ndtr", "ndtr", "ndtri", "owens_t", "wofz",
    ),
    "bedrax.scipy.special.entropies": (
        "boxcox", "boxcox1p", "entr", "expit", "kl_div", "log_softmax", "logit", "logsumexp", "rel_entr", "softmax",
        "xlog1py", "xlogy",
    ),
    "bedrax.scipy.special.integrals": ("exp1", "expi", "expn", "sici", "spence"),
    "bedrax.scipy.special.bessel": ("bessel_jn", "i0", "i0e", "i1", "i1e"),
    "bedrax.scipy.special.hypergeometric": ("hyp1f1", "hyp2f1"),
    "bedrax.scipy.special.harmonics": ("sph_harm_y",),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)
