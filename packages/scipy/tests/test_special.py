"""Special functions against SciPy in float64, and their derivatives against finite differences."""

import numpy as np
import pytest
import scipy.special as sp

import bedrax.numpy as jnp
from bedrax.autodiff import check_grads, grad, jvp
from bedrax.batching import vmap
from bedrax.core import config
from bedrax.scipy import special
from bedrax.testing import oracles


@pytest.fixture(autouse=True)
def float64():
    with config.enable_x64(True), np.errstate(all="ignore"):
        yield


WIDE = np.concatenate([np.linspace(-30, 30, 121), [-1e3, 1e3, 1e-5, -1e-5, 0.0, np.inf, np.nan]])
UNIT = np.concatenate([np.linspace(0, 1, 101), [1e-300, 1e-20, 1e-10]])
POSITIVE = abs(WIDE)
UNARY = {
    "dawsn": WIDE,
    "entr": WIDE,
    "erf": WIDE,
    "erfc": WIDE,
    "erfcinv": 2 * UNIT,
    "erfcx": WIDE,
    "erfinv": UNIT,
    "exp1": POSITIVE,
    "expi": WIDE,
    "expit": WIDE,
    "factorial": np.arange(0, 25, 0.5),
    "gamma": WIDE,
    "gammaln": WIDE,
    "gammasgn": WIDE,
    "i0": WIDE,
    "i0e": WIDE,
    "i1": WIDE,
    "i1e": WIDE,
    "log_ndtr": WIDE,
    "loggamma": WIDE,
    "logit": UNIT,
    "ndtr": WIDE,
    "ndtri": UNIT,
    "spence": POSITIVE[POSITIVE < 1e9],
}


def close(actual, expected, rtol=2e-13):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=rtol, atol=1e-300)


@pytest.mark.parametrize("name", UNARY)
def test_values_of_one_argument(name):
    oracles.require(f"scipy.special.{name}")
    close(getattr(special, name)(UNARY[name]), getattr(sp, name)(UNARY[name]))


A, B = np.meshgrid(np.linspace(0.1, 20, 9), np.linspace(0.1, 20, 8))
SHARE = np.linspace(0.01, 0.99, 8)[:, None]
SEVERAL = {
    "beta": (A, B), "betainc": (A, B, SHARE), "betaln": (A, B), "boxcox": (A, B - 10), "boxcox1p": (A / 10, (B - 10) * 1e-4),
    "comb": (A, B), "expn": (np.arange(9), B), "gammainc": (A, B + 1), "gammaincc": (A, B), "kl_div": (A, B),
    "owens_t": (A - 5, B - 3), "poch": (A, B - 3.05), "polygamma": (np.arange(9), B), "rel_entr": (A, B),
    "xlog1py": (A, B), "xlogy": (A - 5, B), "zeta": (A + 1, B),
    "hyp1f1": (A - 10, B, np.array([-50, -0.1, 0.3, 1, 7, 60, 100, 200])[:, None]),
    "hyp2f1": (A - 5, B * 0.3, B + 0.3, np.linspace(-4, 0.98, 8)[:, None]),
}  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL)
def test_values_of_several_arguments(name):
    tolerance = 1e-9 if name.startswith("hyp") else 2e-12
    close(getattr(special, name)(*SEVERAL[name]), getattr(sp, name)(*SEVERAL[name]), tolerance)


@pytest.mark.parametrize("name", ["sici", "fresnel"])
def test_pairs(name):
    for actual, expected in zip(getattr(special, name)(WIDE), getattr(sp, name)(WIDE), strict=True):
        close(actual, expected)


def test_complex_values():
    z = (A - 10) / 2 + 1j * (B - 10) / 3
    close(special.wofz(z), sp.wofz(z), 1e-12)
    close(special.loggamma(z), sp.loggamma(z), 1e-11)
    close(special.wofz(WIDE[:100]), sp.wofz(WIDE[:100]), 1e-11)


def test_bessel_functions_of_integer_order():
    x = np.concatenate([np.linspace(-25, 25, 40), [0.0, 1e-5]])
    close(special.bessel_jn(x, v=5, n_iter=70), np.stack([sp.jv(k, x) for k in range(6)]), 1e-11)
    with config.enable_x64(True):
        assert special.bessel_jn(np.float32([1]), v=2).dtype == np.float32


def test_bernoulli_numbers_and_multivariate_gamma():
    close(special.bernoulli(30), sp.bernoulli(30), 1e-11)
    assert special.bernoulli(0).shape == (1,)
    close(special.multigammaln(B + 3, 3), sp.multigammaln(B + 3, 3))


def test_spherical_harmonics():
    n, m = np.arange(6)[:, None, None, None], np.arange(-5, 6)[None, :, None, None]
    theta, phi = np.linspace(0, 3.1, 5)[:, None], np.linspace(0, 6, 4)
    oracles.require("scipy.special.sph_harm_y")
    expected = sp.sph_harm_y(n, m, theta, phi)
    np.testing.assert_allclose(special.sph_harm_y(n, m, theta, phi), expected, atol=1e-14)
    traced = vmap(lambda n: special.sph_harm_y(n, 1, 0.3, 0.4, n_max=5))(np.arange(6))
    np.testing.assert_allclose(traced, sp.sph_harm_y(np.arange(6), 1, 0.3, 0.4), atol=1e-14)


def test_legendre_functions():
    z = np.linspace(-0.9, 0.9, 5)
    values, slopes = special.lpmn(2, 4, z)
    oracles.require("scipy.special.assoc_legendre_p_all")
    expected = sp.assoc_legendre_p_all(4, 2, z[:, None], diff_n=1)[:, :, :3, :, 0]  # (derivative, degree, order, z)
    close(values, expected[0].swapaxes(0, 1), 1e-12)
    close(slopes, expected[1].swapaxes(0, 1), 1e-11)
    n, m = np.meshgrid(np.arange(5), np.arange(3))
    norm = sp.sph_harm_y(n[..., None], m[..., None], np.arccos(z), 0.0).real
    np.testing.assert_allclose(special.lpmn_values(2, 4, z, True), norm, atol=1e-13)


SMOOTH = {
    "dawsn": [-7.0, -0.3, 0.0, 2.2, 6.0], "entr": [0.3, 2.0], "erfcinv": [0.1, 0.4, 1.0, 1.7], "erfcx": [-1.5, 0.0, 0.7, 30.0], "exp1": [0.4, 3.0],
    "expi": [-2.0, 0.3, 4.0, 9.0, 15.0], "gamma": [-1.5, 0.4, 3.0], "i0": [-2.0, 0.0, 1.5], "i1": [-2.0, 0.0, 1.5],
    "log_ndtr": [-30.0, -3.0, -0.5, 0.0, 2.0], "logit": [0.1, 0.45, 0.5, 0.8], "ndtr": [-2.0, 0.0, 0.5, 3.0],
    "ndtri": [0.01, 0.3, 0.5, 0.99], "spence": [0.3, 0.9, 1.0, 1.2, 5.0],
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_of_one_argument(name):
    check_grads(getattr(special, name), (np.array(SMOOTH[name]),), order=2, rtol=1e-4, atol=1e-5)


PARTIALS = {
    "beta": (2.0, 3.5), "betaln": (2.0, 12.0), "boxcox": (2.0, 0.3), "comb": (5.3, 2.2), "gammainc": (2.0, 1.3), "poch": (2.0, 1.5),
    "owens_t": (0.7, 1.6), "rel_entr": (0.4, 0.7), "kl_div": (0.4, 0.7), "xlogy": (1.2, 0.4), "xlog1py": (1.2, 0.4),
    "hyp1f1": (0.7, 1.6, 2.1), "hyp2f1": (0.7, 1.6, 2.1, 0.4),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTIALS)
def test_partial_derivatives(name):
    check_grads(getattr(special, name), tuple(map(np.float64, PARTIALS[name])), order=1, rtol=1e-6, atol=1e-8)


def test_derivatives_by_the_last_argument_only():
    check_grads(lambda x: special.expn(3, x), (np.array([0.3, 2.0]),), order=2)
    check_grads(lambda x: special.betainc(2.0, 3.0, x), (np.array([0.3, 0.6]),), order=2)
    check_grads(lambda x: special.sici(x), (np.array([-1.0, 0.5, 9.0]),), order=2)
    check_grads(lambda x: special.fresnel(x), (np.array([-1.0, 0.5, 3.0]),), order=2)
    with pytest.raises(ValueError, match="derivative by argument 0"):
        grad(lambda n: special.expn(n, 2.0))(3.0)


def test_derivatives_where_a_factor_is_zero():
    assert grad(special.xlogy, (0, 1))(0.0, 2.0) == (np.log(2.0), 0)
    assert grad(special.xlog1py, (0, 1))(0.0, 1.0) == (np.log1p(1.0), 0)
    assert grad(special.rel_entr, (0, 1))(0.0, 1.0) == (0, 0)
    assert grad(special.entr)(0.0) == np.inf
    value, slope = jvp(lambda x: special.xlogy(x, x), (2.0,), (1.0,))
    np.testing.assert_allclose([value, slope], [2 * np.log(2), np.log(2) + 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, jnp.bfloat16])
@pytest.mark.parametrize("name", UNARY)
def test_narrow_dtypes(name, dtype):
    x = np.array([0.2, 0.4, 0.7], dtype)
    y = getattr(special, name)(x)
    assert y.dtype == dtype
    eps = float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(
        np.asarray(y, np.float64), getattr(sp, name)(np.asarray(x, np.float64)), rtol=30 * eps, atol=eps
    )


def test_softmax():
    x = np.random.default_rng(0).standard_normal((3, 4))
    for axis in (None, 0, (0, 1)):
        close(special.softmax(x, axis=axis), sp.softmax(x, axis=axis))
        close(special.log_softmax(x, axis=axis), sp.log_softmax(x, axis=axis))
        close(special.logsumexp(x, axis=axis), sp.logsumexp(x, axis=axis))


def test_unsupported_arguments_are_refused():
    with pytest.raises(NotImplementedError, match="s zeta function is not implemented"):
        special.zeta(2.0)
    with pytest.raises(NotImplementedError, match="exact"):
        special.factorial(3, exact=True)
    with pytest.raises(TypeError, match="n holds integers, got float"):
        special.polygamma(1.0, 2.0)
    with pytest.raises(TypeError, match="is not supported"):
        special.ndtr(np.int32(1))
    with pytest.raises(TypeError, match="real numbers"):
        special.gammaln(1j)
    for order, error in ((31, ValueError), (-1, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="series_order"):
            special.log_ndtr(1.0, series_order=order)
    with pytest.raises(NotImplementedError, match="diff_n"):
        special.sph_harm_y(1, 0, 0.1, 0.1, diff_n=1)


@pytest.mark.parametrize(
    "given", [(2, 2, 2, 2), (2, 3, 2, 3), (2, 2.5, 2.5, 3), (1, 2, 3, 2), (-1.5, 2, 2, 2), (2.5, 2, 2, 2)]
)
def test_the_hypergeometric_function_beyond_one(given):
    given = [float(x) for x in given]
    assert special.hyp2f1(*given) == sp.hyp2f1(*given)


@pytest.mark.parametrize(
    "dtype, tolerance", [(np.float64, 4e-16), (np.float32, 3e-7), (np.float16, 1e-3), ("bfloat16", 8e-3)]
)
def test_the_inverse_of_erfc_in_every_float_dtype(dtype, tolerance):
    tiny = {np.float64: 1e-300, np.float32: 1e-37, np.float16: 1e-4, "bfloat16": 1e-37}[dtype]
    y = jnp.asarray(
        np.concatenate([np.geomspace(tiny, 0.9, 60), np.linspace(0.9, 1.999, 60), [0, 2, -1, 3, np.nan]])
    ).astype(dtype)
    found = special.erfcinv(y)
    assert found.dtype == y.dtype
    expected = sp.erfcinv(np.asarray(y, np.float64))
    np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=8 * tolerance, atol=4 * tolerance)
