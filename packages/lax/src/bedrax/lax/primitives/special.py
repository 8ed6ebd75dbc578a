"""Special functions: error functions, the gamma family, zeta, Bessel, the incomplete beta function.

Shapes and dtypes as in the elementwise family, floats only. Functions without a StableHLO operation are
composed of lax functions in `bedrax.lax.decompositions.special`.
"""

from __future__ import annotations

import functools
from typing import Final

from bedrax.core.array import Array
from bedrax.core.tables import pure_shapes
from bedrax.core.typing import ArrayLike
from bedrax.lax.operands import bind_nary
from bedrax.lax.primitives.elementwise import FLOAT, nary, of_one

pure_shapes.add(__name__)

__all__ = [
    "bessel_i0e",
    "bessel_i0e_p",
    "bessel_i1e",
    "bessel_i1e_p",
    "betainc",
    "digamma",
    "digamma_p",
    "erf",
    "erf_inv",
    "erf_inv_p",
    "erf_p",
    "erfc",
    "erfc_p",
    "igamma",
    "igamma_grad_a",
    "igamma_grad_a_p",
    "igamma_p",
    "igammac",
    "igammac_p",
    "lgamma",
    "lgamma_p",
    "polygamma",
    "polygamma_p",
    "random_gamma_grad",
    "random_gamma_grad_p",
    "regularized_incomplete_beta_p",
    "zeta",
    "zeta_p",
]

_special = functools.partial(of_one, family="special")
_special_nary = functools.partial(nary, family="special")

erf_p, erf = _special(
    "erf",
    FLOAT,
    r"Elementwise error function, :math:`\frac{2}{\sqrt\pi} \int_0^x e^{-t^2} dt`.",
    example="""
    >>> lax.erf(jnp.array([0., 1.]))
    Array([0.        , 0.84270084], dtype=float32)
    """,
)
erfc_p, erfc = _special(
    "erfc",
    FLOAT,
    r"Elementwise :math:`1 - \mathrm{erf}(x)` without cancellation.",
    accurate=True,
    example="""
    >>> lax.erfc(jnp.array([0., 1.]))
    Array([1.        , 0.15729924], dtype=float32)
    """,
)
erf_inv_p, erf_inv = _special(
    "erf_inv",
    FLOAT,
    "Elementwise inverse of `erf`: infinite at -1 and 1, nan outside.",
    example="""
    >>> lax.erf_inv(jnp.array([0., 0.5]))
    Array([0.        , 0.47693628], dtype=float32)
    """,
)
lgamma_p, lgamma = _special(
    "lgamma",
    FLOAT,
    r"Elementwise :math:`\log |\Gamma(x)|`; infinite at 0, -1, -2, ...",
    example="""
    >>> lax.lgamma(jnp.array([1., 5.]))
    Array([4.7683716e-07, 3.1780548e+00], dtype=float32)
    """,
)
digamma_p, digamma = _special(
    "digamma",
    FLOAT,
    r"Elementwise :math:`\psi(x)`, the derivative of `lgamma`; nan at 0, -1, -2, ...",
    example="""
    >>> lax.digamma(jnp.array([1., 2.]))
    Array([-0.5772154 ,  0.42278463], dtype=float32)
    """,
)
bessel_i0e_p, bessel_i0e = _special(
    "bessel_i0e",
    FLOAT,
    r"Elementwise :math:`e^{-|x|} I_0(x)`, a modified Bessel function, scaled.",
    example="""
    >>> lax.bessel_i0e(jnp.array([0., 1.]))
    Array([1.0000001, 0.4657596], dtype=float32)
    """,
)
bessel_i1e_p, bessel_i1e = _special(
    "bessel_i1e",
    FLOAT,
    r"Elementwise :math:`e^{-|x|} I_1(x)`, a modified Bessel function, scaled.",
    example="""
    >>> lax.bessel_i1e(jnp.array([0., 1.]))
    Array([0.        , 0.20791043], dtype=float32)
    """,
)
polygamma_p: Final = _special_nary("polygamma", FLOAT)
zeta_p: Final = _special_nary("zeta", FLOAT)
igamma_p: Final = _special_nary("igamma", FLOAT)
igammac_p: Final = _special_nary("igammac", FLOAT)
igamma_grad_a_p: Final = _special_nary("igamma_grad_a", FLOAT)
random_gamma_grad_p: Final = _special_nary("random_gamma_grad", FLOAT)
regularized_incomplete_beta_p: Final = _special_nary("regularized_incomplete_beta", FLOAT, FLOAT, FLOAT)


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    r"""The `m`-th derivative of digamma, :math:`\psi^{(m)}(x)`.

    Args:
      m: the order, floats with values 0, 1, 2, ...; nan for others.
      x: floats of the same dtype.

    Examples:

      >>> lax.polygamma(1., jnp.array([1., 2.]))
      Array([1.644934  , 0.64493406], dtype=float32)
    """
    return bind_nary(polygamma_p, m, x)


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    r"""Hurwitz's zeta function, :math:`\sum_{k \ge 0} (k + q)^{-x}` for :math:`x > 1`.

    Args:
      x: the exponent, floats above 1.
      q: the shift, floats of the same dtype.

    Examples:

      >>> lax.zeta(jnp.array([2., 4.]), 1.)
      Array([1.644934 , 1.0823234], dtype=float32)
    """
    return bind_nary(zeta_p, x, q)


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    r"""The regularized lower incomplete gamma function, :math:`\frac{1}{\Gamma(a)} \int_0^x t^{a-1} e^{-t} dt`.

    Args:
      a: the parameter, positive floats.
      x: the upper limit, not negative, of the same dtype.

    Examples:

      >>> lax.igamma(1., jnp.array([0., 1., 2.]))
      Array([0.        , 0.6321205 , 0.86466473], dtype=float32)
    """
    return bind_nary(igamma_p, a, x)


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    r"""The regularized upper incomplete gamma function, :math:`1 - P(a, x)` without cancellation.

    Args:
      a: the parameter, positive floats.
      x: the lower limit, not negative, of the same dtype.

    Examples:

      >>> lax.igammac(1., jnp.array([0., 1.]))
      Array([1.       , 0.3678795], dtype=float32)
    """
    return bind_nary(igammac_p, a, x)


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of ``igamma(a, x)`` by `a`.

    Args:
      a, x: as in `igamma`.

    Examples:

      >>> jnp.allclose(lax.igamma_grad_a(1., 2.), jax.grad(lax.igamma)(1., 2.))
      Array(True, dtype=bool)
    """
    return bind_nary(igamma_grad_a_p, a, x)


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of a gamma variate by its shape parameter.

    Args:
      a: the shape parameter.
      x: samples of the gamma distribution with this parameter.

    Returns:
      ``dx/da`` at constant probability, i.e. ``-igamma_grad_a(a, x) / pdf(a, x)``
      (Figurnov, Mohamed and Mnih 2018, Implicit Reparameterization Gradients).

    Examples:

      >>> lax.random_gamma_grad(jnp.array([2., 3.]), jnp.array([1., 2.]))
      Array([0.7507787, 0.8565717], dtype=float32)
    """
    return bind_nary(random_gamma_grad_p, a, x)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    r"""The regularized incomplete beta function :math:`I_x(a, b)`.

    Args:
      a, b: positive parameters.
      x: in [0, 1]; nan outside.

    Examples:

      >>> lax.betainc(2., 2., 0.5)
      Array(0.5000005, dtype=float32, weak_type=True)
    """
    return bind_nary(regularized_incomplete_beta_p, a, b, x)
