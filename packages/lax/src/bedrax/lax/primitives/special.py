"""Special functions: error functions, the gamma family, zeta, Bessel, the incomplete beta function.

Shapes and dtypes as in the elementwise family, floats only. What has no StableHLO operation is
composed of lax functions in `bedrax.lax.special_programs`.
"""

from __future__ import annotations

from bedrax.core.tables import pure_shapes
from bedrax.lax.operands import bind_nary
from bedrax.lax.primitives.elementwise import FLOAT, nary, unary

pure_shapes.add("special")

__all__ = [
    "bessel_i0e", "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p", "betainc", "digamma", "digamma_p", "erf", "erf_inv",
    "erf_inv_p", "erf_p", "erfc", "erfc_p", "igamma", "igamma_grad_a", "igamma_grad_a_p", "igamma_p", "igammac",
    "igammac_p", "lgamma", "lgamma_p", "polygamma", "polygamma_p", "random_gamma_grad", "random_gamma_grad_p",
    "regularized_incomplete_beta_p", "zeta", "zeta_p",
]  # fmt: skip

_FAMILY = "special"

erf_p = unary("erf", FLOAT, family=_FAMILY)
erfc_p = unary("erfc", FLOAT, family=_FAMILY)
erf_inv_p = unary("erf_inv", FLOAT, family=_FAMILY)
lgamma_p = unary("lgamma", FLOAT, family=_FAMILY)
digamma_p = unary("digamma", FLOAT, family=_FAMILY)
bessel_i0e_p = unary("bessel_i0e", FLOAT, family=_FAMILY)
bessel_i1e_p = unary("bessel_i1e", FLOAT, family=_FAMILY)
polygamma_p = nary("polygamma", FLOAT, family=_FAMILY)
zeta_p = nary("zeta", FLOAT, family=_FAMILY)
igamma_p = nary("igamma", FLOAT, family=_FAMILY)
igammac_p = nary("igammac", FLOAT, family=_FAMILY)
igamma_grad_a_p = nary("igamma_grad_a", FLOAT, family=_FAMILY)
random_gamma_grad_p = nary("random_gamma_grad", FLOAT, family=_FAMILY)
regularized_incomplete_beta_p = nary("regularized_incomplete_beta", FLOAT, FLOAT, FLOAT, family=_FAMILY)


def erf(x):
    r"""Elementwise error function, :math:`\frac{2}{\sqrt\pi} \int_0^x e^{-t^2} dt`."""
    return erf_p.bind(x)


def erfc(x):
    r"""Elementwise complementary error function, :math:`1 - \mathrm{erf}(x)` without cancellation."""
    return erfc_p.bind(x)


def erf_inv(x):
    """Elementwise inverse of `erf`: infinite at -1 and 1, nan outside."""
    return erf_inv_p.bind(x)


def lgamma(x):
    r"""Elementwise :math:`\log |\Gamma(x)|`; infinite at 0, -1, -2, ..."""
    return lgamma_p.bind(x)


def digamma(x):
    r"""Elementwise :math:`\psi(x)`, the derivative of :math:`\log \Gamma`; nan at 0, -1, -2, ..."""
    return digamma_p.bind(x)


def polygamma(m, x):
    r"""The `m`-th derivative of digamma, :math:`\psi^{(m)}(x)`.

    Args:
      m: the order, floats with values 0, 1, 2, ...; nan for others.
      x: floats of the same dtype.
    """
    return bind_nary(polygamma_p, m, x)


def zeta(x, q):
    r"""Hurwitz's zeta function, :math:`\sum_{k \ge 0} (k + q)^{-x}` for :math:`x > 1`."""
    return bind_nary(zeta_p, x, q)


def igamma(a, x):
    r"""The regularized lower incomplete gamma function, :math:`\frac{1}{\Gamma(a)} \int_0^x t^{a-1} e^{-t} dt`."""
    return bind_nary(igamma_p, a, x)


def igammac(a, x):
    r"""The regularized upper incomplete gamma function, :math:`1 - P(a, x)` without cancellation."""
    return bind_nary(igammac_p, a, x)


def igamma_grad_a(a, x):
    """The derivative of ``igamma(a, x)`` by `a`."""
    return bind_nary(igamma_grad_a_p, a, x)


def random_gamma_grad(a, x):
    """The derivative of a gamma variate by its shape parameter.

    Args:
      a: the shape parameter.
      x: samples of the gamma distribution with this parameter.

    Returns:
      ``dx/da`` at constant probability, i.e. ``-igamma_grad_a(a, x) / pdf(a, x)``
      (Figurnov, Mohamed and Mnih 2018, Implicit Reparameterization Gradients).
    """
    return bind_nary(random_gamma_grad_p, a, x)


def betainc(a, b, x):
    r"""The regularized incomplete beta function :math:`I_x(a, b)`.

    Args:
      a, b: positive parameters.
      x: in [0, 1]; nan outside.
    """
    return bind_nary(regularized_incomplete_beta_p, a, b, x)


def bessel_i0e(x):
    r"""Elementwise :math:`e^{-|x|} I_0(x)`, the exponentially scaled modified Bessel function of order 0."""
    return bessel_i0e_p.bind(x)


def bessel_i1e(x):
    r"""Elementwise :math:`e^{-|x|} I_1(x)`, the exponentially scaled modified Bessel function of order 1."""
    return bessel_i1e_p.bind(x)
