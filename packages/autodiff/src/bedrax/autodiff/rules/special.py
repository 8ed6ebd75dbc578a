"""Derivatives of special functions (formulas: DLMF chapters 5, 7, 8, 10)."""

import math

from bedrax.autodiff.tables import absent, jvp
from bedrax.lax import filling
from bedrax.lax.primitives import elementwise as e
from bedrax.lax.primitives import special as p
from bedrax.lax.primitives.elementwise import add, div, mul, neg, scalar_like, sub


def _one(x):
    return scalar_like(x, 1)


_GAUSS = 2 / math.sqrt(math.pi)

jvp(p.erf_p, lambda t, ans, x: mul(t, mul(scalar_like(x, _GAUSS), e.exp(neg(e.square(x))))))
jvp(p.erfc_p, lambda t, ans, x, **_: mul(t, mul(scalar_like(x, -_GAUSS), e.exp(neg(e.square(x))))))
jvp(p.erf_inv_p, lambda t, ans, x: mul(t, mul(scalar_like(x, 1 / _GAUSS), e.exp(e.square(ans)))))
jvp(p.lgamma_p, lambda t, ans, x: mul(t, p.digamma(x)))
jvp(p.digamma_p, lambda t, ans, x: mul(t, p.polygamma(filling.full_like(x, 1), x)))
jvp(p.bessel_i0e_p, lambda t, ans, x: mul(t, sub(p.bessel_i1e(x), mul(e.sign(x), ans))))


def _bessel_i1e(t, ans, x):
    # I1' = I0 - I1/x, and I1(x)/x -> 1/2 at 0.
    at_zero = e.eq(x, scalar_like(x, 0))
    safe = e.select_n(at_zero, x, filling.full_like(x, 1))
    slope = sub(p.bessel_i0e(safe), mul(ans, add(e.sign(safe), div(_one(x), safe))))
    return mul(t, e.select_n(at_zero, slope, filling.full_like(x, 0.5)))


jvp(p.bessel_i1e_p, _bessel_i1e)


def _unsupported(what):
    def formula(t, *_):
        raise ValueError(f"{what} is not supported; apply lax.stop_gradient to this argument")

    return formula


jvp(
    p.polygamma_p,
    _unsupported("polygamma gradient with respect to m"),
    lambda t, ans, m, x: mul(t, p.polygamma(add(m, _one(m)), x)),
)
jvp(
    p.zeta_p,
    _unsupported("zeta gradient with respect to x"),
    lambda t, ans, x, q: mul(t, neg(mul(x, p.zeta(add(x, _one(x)), q)))),
)


def _times_log(c, log_x):
    """``c log(x)``, and 0 for c = 0 where the logarithm is infinite."""
    product = mul(c, log_x)
    return e.select_n(e.eq(c, scalar_like(c, 0)), product, filling.full_like(product, 0))


def _gamma_density(a, x):
    """The density of the gamma distribution with shape `a`."""
    return e.exp(sub(sub(_times_log(sub(a, _one(a)), e.log(x)), x), p.lgamma(a)))


jvp(p.igamma_p, lambda t, ans, a, x: mul(t, p.igamma_grad_a(a, x)), lambda t, ans, a, x: mul(t, _gamma_density(a, x)))
jvp(
    p.igammac_p,
    lambda t, ans, a, x: neg(mul(t, p.igamma_grad_a(a, x))),
    lambda t, ans, a, x: neg(mul(t, _gamma_density(a, x))),
)
jvp(
    p.igamma_grad_a_p,
    _unsupported("the second derivative of igamma with respect to a"),
    lambda t, ans, a, x: mul(t, mul(_gamma_density(a, x), sub(e.log(x), p.digamma(a)))),
)
absent(p.random_gamma_grad_p, why="it is a derivative already; second derivatives of gamma samples are not known here")


def _beta_density(a, b, x):
    log_beta = sub(add(p.lgamma(a), p.lgamma(b)), p.lgamma(add(a, b)))
    powers = add(_times_log(sub(b, _one(b)), e.log1p(neg(x))), _times_log(sub(a, _one(a)), e.log(x)))
    return e.exp(sub(powers, log_beta))


_by_parameter = _unsupported("Betainc gradient with respect to a and b")
jvp(
    p.regularized_incomplete_beta_p,
    _by_parameter,
    _by_parameter,
    lambda t, ans, a, b, x: mul(t, _beta_density(a, b, x)),
)
