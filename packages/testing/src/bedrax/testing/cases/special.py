"""Records of the special functions; SciPy is the oracle, if it is installed."""

from __future__ import annotations

import numpy as np

from bedrax.lax.primitives import special as p
from bedrax.lax.primitives.elementwise import AccuracyMode, Tolerance
from bedrax.testing.records import OpCase, arg, into

CASES: list[OpCase] = []


def _scipy(name, *more):
    """scipy.special's function in float64; imported at its first use in a test."""

    def oracle(*args):
        import scipy.special

        return getattr(scipy.special, name)(*[np.asarray(a, np.float64) for a in args])

    return oracle


_add = into(CASES)


_NAN, _INF = np.nan, np.inf
for _prim, _fun, _name, (_low, _high), _far in (
    (p.erf_p, p.erf, "erf", (-2, 2), [0, -0.0, 5, -5, 1e-20, _INF, -_INF, _NAN]),
    (p.erfc_p, p.erfc, "erfc", (-2, 3), [0, 5, -5, 9, 1e-20, _INF, -_INF, _NAN]),
    (p.erf_inv_p, p.erf_inv, "erfinv", (-0.95, 0.95), [0, 1, -1, 0.999999, 1e-20, 1.5, _NAN]),
    (p.lgamma_p, p.lgamma, "gammaln", (0.3, 6), [-0.5, -3.7, 1, 2, 1e-20, 300, _INF, _NAN, 0, -1]),
    (p.digamma_p, p.digamma, "digamma", (0.3, 6), [-0.5, -3.7, 1, 1.4616321, 1e3, 1e6, -1, _NAN]),
    (p.bessel_i0e_p, p.bessel_i0e, "i0e", (-9, 10), [0, 8, 8.5, -20, 1e4, _NAN]),
    (p.bessel_i1e_p, p.bessel_i1e, "i1e", (-9, 10), [0, 8, 8.5, -20, 1e4, _NAN]),
):
    _add(_prim, "f32", _fun, [arg((2, 3), "float32", _low, _high)], oracle=_scipy(_name))
    _add(_prim, "f64", _fun, [arg((5,), "float64", _low, _high)], oracle=_scipy(_name), rtol=1e-13, grad=())
    _add(_prim, "bf16", _fun, [arg((3,), "bfloat16", _low, _high)], oracle=_scipy(_name), grad=())
    _add(_prim, "f16", _fun, [arg((3,), "float16", _low, _high)], oracle=_scipy(_name), grad=())
    _ends = "poles and ends of the domain" if _name in ("erfinv", "gammaln", "digamma") else None
    _add(_prim, "far", _fun, [np.float32(_far)], oracle=_scipy(_name), grad=(), rtol=2e-5, exact=_ends)

_M = np.float32([0, 1, 2, 5])
_add(
    p.polygamma_p,
    "f32",
    p.polygamma,
    [_M, arg((4,), low=0.4, high=4)],
    oracle=_scipy("polygamma"),
    grad=(1,),
    rtol=1e-4,
    exact="the order is an integer",
)
_add(
    p.polygamma_p,
    "scalar",
    p.polygamma,
    [np.float32(1), arg((4,), low=0.4, high=14)],
    oracle=_scipy("polygamma"),
    grad=(1,),
    rtol=1e-4,
    exact="the order is an integer",
)
_add(
    p.polygamma_p,
    "bad order",
    p.polygamma,
    [np.float32([0.5, -1]), np.float32([1, 1])],
    oracle=lambda m, x: [_NAN, _NAN],
    grad=(),
)
_add(
    p.zeta_p,
    "f32",
    p.zeta,
    [arg((4,), low=1.5, high=6), arg((4,), low=0.3, high=20)],
    oracle=_scipy("zeta"),
    grad=(1,),
    rtol=1e-5,
)
_add(
    p.zeta_p,
    "f64",
    p.zeta,
    [arg((4,), "float64", 1.1, 6), arg((), "float64", 0.3, 5)],
    oracle=_scipy("zeta"),
    grad=(1,),
    rtol=1e-12,
)
_add(
    p.zeta_p,
    "edges",
    p.zeta,
    [np.float32([1, 0.5, 2, 2]), np.float32([1, 1, 0, -1])],
    grad=(),
    oracle=lambda x, q: [_INF, _NAN, _INF, _INF],
    exact="poles and ends of the domain",
)

_A = np.float64([0.1, 0.5, 1, 3, 3, 10, 50, 50, 200, 5000, 1e5])
_X = np.float64([0.05, 2, 0.7, 2.5, 9, 9, 40, 55, 190, 5050, 1e5])
for _prim, _fun, _name in ((p.igamma_p, p.igamma, "gammainc"), (p.igammac_p, p.igammac, "gammaincc")):
    _add(
        _prim,
        "f32",
        _fun,
        [arg((4,), low=0.3, high=5), arg((4,), low=0.3, high=5)],
        oracle=_scipy(_name),
        rtol=1e-5,
        second=False,
        grad_rtol=1e-5,
    )
    _add(
        _prim,
        "second in x",
        _fun,
        [np.float32([0.7, 2.5]), arg((2,), low=0.5, high=5)],
        oracle=_scipy(_name),
        rtol=1e-5,
        grad=(1,),
    )
    _add(_prim, "f64", _fun, [_A, _X], oracle=_scipy(_name), rtol=1e-11, atol=1e-300, grad=())
    # Elements that converge soon must not drift while others go on.
    _add(
        _prim,
        "mixed speeds",
        _fun,
        [np.float32([1, 1, 1e6]), np.float32([2.5, 0.5, 1e6 + 100])],
        oracle=_scipy(_name),
        rtol=1e-4,
        grad=(),
    )
    _add(_prim, "large f32", _fun, [_A.astype("f"), _X.astype("f")], oracle=_scipy(_name), rtol=3e-4, grad=())
    _add(
        _prim,
        "huge",
        _fun,
        [np.float64([1e7, 1e7, 1e9]), np.float64([1e7 + 3000, 1e7 - 100, 1e9])],
        oracle=_scipy(_name),
        rtol=1e-7,
        grad=(),
    )
    _add(
        _prim,
        "edges",
        _fun,
        [np.float32([1, 1, -1, 1, _NAN]), np.float32([0, _INF, 1, -1, 1])],
        oracle=_scipy(_name),
        grad=(),
    )
    _add(
        _prim,
        "bf16",
        _fun,
        [arg((3,), "bfloat16", 0.5, 4), arg((3,), "bfloat16", 0.5, 4)],
        oracle=_scipy(_name),
        grad=(),
    )


def _slope(a, x):
    """dP/da by differences of SciPy's function, of fourth order."""
    import scipy.special

    a, x = np.asarray(a, np.float64), np.asarray(x, np.float64)
    h = 1e-3 * a
    f = lambda k: scipy.special.gammainc(a + k * h, x)
    return (8 * (f(1) - f(-1)) - (f(2) - f(-2))) / (12 * h)


def _sample_slope(a, x):
    a, x = np.asarray(a, np.float64), np.asarray(x, np.float64)
    import scipy.special

    return -_slope(a, x) / np.exp((a - 1) * np.log(x) - x - scipy.special.gammaln(a))


_GA, _GX = np.float64([0.5, 0.5, 2, 2, 30, 30]), np.float64([0.2, 3, 1, 6, 25, 40])
_add(p.igamma_grad_a_p, "f64", p.igamma_grad_a, [_GA, _GX], oracle=_slope, rtol=1e-7, grad=(1,))
_add(p.igamma_grad_a_p, "f32", p.igamma_grad_a, [_GA.astype("f"), _GX.astype("f")], oracle=_slope, rtol=1e-4, grad=())
_add(p.random_gamma_grad_p, "f64", p.random_gamma_grad, [_GA, _GX], oracle=_sample_slope, rtol=1e-6, grad=())
_add(
    p.random_gamma_grad_p,
    "f32",
    p.random_gamma_grad,
    [_GA.astype("f"), _GX.astype("f")],
    oracle=_sample_slope,
    rtol=2e-4,
    grad=(),
)
_add(
    p.random_gamma_grad_p,
    "huge",
    p.random_gamma_grad,
    [np.float64([2e6]), np.float64([2e6 + 2000])],
    oracle=lambda a, x: 1 + (x - a) / (2 * a),
    rtol=1e-6,
    grad=(),
)

_beta = p.regularized_incomplete_beta_p
_add(
    _beta,
    "f32",
    p.betainc,
    [arg((4,), low=0.3, high=5), arg((4,), low=0.3, high=5), arg((4,), low=0.1, high=0.9)],
    oracle=_scipy("betainc"),
    grad=(2,),
    rtol=1e-5,
)
_add(
    _beta,
    "scalars",
    p.betainc,
    [np.float32(2), np.float32(3.5), arg((4,), low=0.1, high=0.9)],
    oracle=_scipy("betainc"),
    grad=(2,),
    rtol=1e-5,
)
_add(
    _beta,
    "f64",
    p.betainc,
    [np.float64([0.1, 50, 500, 3]), np.float64([5, 40, 700, 0.01]), np.float64([0.5, 0.5, 0.42, 0.99])],
    oracle=_scipy("betainc"),
    grad=(),
    rtol=1e-11,
)
_add(
    _beta,
    "large f32",
    p.betainc,
    [np.float32([2000, 50, 3, 9000]), np.float32([3000, 60, 5000, 0.5]), np.float32([0.41, 0.4, 5e-4, 0.9999])],
    oracle=_scipy("betainc"),
    grad=(),
    rtol=1e-3,
)
_add(
    _beta,
    "edges",
    p.betainc,
    [
        np.float32([0, 1, 1, 1, 1, -1, _INF, 0]),
        np.float32([1, 0, 1, 1, 1, 1, 1, 0]),
        np.float32([0.5, 0.5, 0, 1, 2, 0.5, 0.5, 0.5]),
    ],
    oracle=lambda a, b, x: [1, 0, 0, 1, _NAN, _NAN, 0, _NAN],
    grad=(),
    exact="ends of the domain",
)
_add(
    _beta,
    "f16",
    p.betainc,
    [arg((3,), "float16", 0.5, 4), arg((3,), "float16", 0.5, 4), arg((3,), "float16", 0.1, 0.9)],
    oracle=_scipy("betainc"),
    grad=(),
)
_add(p.erfc_p, "float8", p.erfc, [arg((5,), "float8_e4m3fn")], oracle=_scipy("erfc"), grad=())
for _accuracy in (AccuracyMode.HIGHEST, Tolerance(ulps=2)):
    _highest = lambda x, accuracy=_accuracy: p.erfc(x, accuracy=accuracy)
    _add(
        p.erfc_p,
        f"{type(_accuracy).__name__} f32",
        _highest,
        [np.float32(np.linspace(-5, 9, 29))],
        oracle=_scipy("erfc"),
        rtol=2e-7,
        atol=0,
        exact="the square of an operand is computed in two parts",
    )
    _add(
        p.erfc_p,
        f"{type(_accuracy).__name__} bf16",
        _highest,
        [arg((5,), "bfloat16", -2, 3)],
        oracle=_scipy("erfc"),
        grad=(),
    )
    _add(
        p.erfc_p,
        f"{type(_accuracy).__name__} f64",
        _highest,
        [arg((5,), "float64", -2, 3)],
        oracle=_scipy("erfc"),
        rtol=1e-13,
        grad=(),
    )
