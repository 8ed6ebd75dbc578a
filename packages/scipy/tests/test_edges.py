"""Functions of SciPy at their edges: empty arrays, scalars, limits of parameters, beyond the usual domain."""

import numpy as np
import pytest
import scipy.fft
import scipy.interpolate
import scipy.signal as ss
import scipy.special as sp
import scipy.stats as st

import bedrax.numpy as jnp
from bedrax import scipy as bs
from bedrax.autodiff import grad
from bedrax.core.jitting import jit
from bedrax.testing import oracles


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=2e-5, atol=1e-6)


A, X = np.meshgrid([0, 0.5, 2, np.inf, -1, np.nan], [0, 0.3, 40, np.inf, -1, np.nan])


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions_at_the_limits_of_the_parameter(name):
    oracles.require(f"scipy.special.{name}")
    a, x = A.astype(np.float32), X.astype(np.float32)
    expected = getattr(sp, name)(a, x)
    close(getattr(bs.special, name)(a, x), expected)
    close(jit(getattr(bs.special, name))(a, x), expected)


def test_hypergeometric_functions_beyond_one_where_they_are_polynomials_times_powers():
    n, m, x = (v.astype(np.float32) for v in np.meshgrid([1, 2, 3, 4], [0, 1, 2], [1.5, 2, 3, 5]))
    for a, b, c in ((n + m, n + 1, n), (n + 1, n + m, n), (n, 0.5 * n, 0.5 * n)):
        close(bs.special.hyp2f1(a, b, c, x), sp.hyp2f1(*(v.astype(np.float64) for v in (a, b, c, x))))


@pytest.mark.parametrize("shape, axis", [((0,), -1), ((2, 0), -1), ((0, 2), 0)])
def test_spectra_of_nothing_are_nothing(shape, axis):
    x = np.zeros(shape, np.float32)
    for name, args in (("stft", (x,)), ("welch", (x,)), ("csd", (x, x))):
        results, expected = getattr(bs.signal, name)(*args, axis=axis), getattr(ss, name)(*args, axis=axis)
        assert [r.shape for r in results] == [e.shape for e in expected], name


def test_scalars_are_vectors_of_one_element():
    assert bs.linalg.circulant(3.0).tolist() == [[3]] and bs.linalg.fiedler(np.float32(2)).tolist() == [[0]]
    for keepdims in (False, True):
        mode, count = bs.stats.mode(np.float32(3), keepdims=keepdims)
        assert (mode.shape, count.shape, float(mode), int(count)) == ((), (), 3, 1)
    with pytest.raises(ValueError, match="axis 1"):
        bs.stats.mode(np.float32(3), axis=1)


@pytest.mark.parametrize("c", [-1.0, 0.0, 1.0, 2.0])
def test_a_density_whose_parameter_is_out_of_range_is_nan(c):
    x = np.float32([1, 2])
    assert np.isnan(st.wrapcauchy.pdf(x, c)).all()
    assert np.isnan(bs.stats.wrapcauchy.pdf(x, np.float32(c))).all()
    assert np.isnan(jit(bs.stats.wrapcauchy.pdf)(x, np.float32(c))).all()


@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
def test_cosine_transforms_of_short_floats_of_nothing_and_over_no_axes(name):
    transform = getattr(bs.fft, name)
    assert transform(jnp.arange(4, dtype=jnp.bfloat16)).dtype == np.float32
    with pytest.raises(ValueError, match="of length 0 has no transform"):
        transform(np.zeros((2, 0), np.float32))
    if name.endswith("n"):
        alone = transform(np.float32(2))
        assert type(alone) is type(jnp.zeros(())) and float(alone) == 2


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
def test_coordinates_of_narrow_integers_reach_along_a_longer_axis(dtype, mode):
    image, at = np.arange(300.0, dtype=np.float32), np.array([0, 100, 127], dtype)
    np.testing.assert_array_equal(bs.ndimage.map_coordinates(image, [jnp.asarray(at)], 1, mode), image[at])


def test_a_grid_has_the_precision_of_its_points():
    points, values = np.arange(300.0, dtype=np.float32), np.arange(300.0)
    for dtype in (jnp.bfloat16, np.float16, np.complex64):
        of = bs.interpolate.RegularGridInterpolator((jnp.asarray(points),), jnp.asarray(values, dtype))
        assert of.grid[0].dtype == np.float32
        close(np.asarray(of(jnp.array([3.25, 129.5]))).real, [3.25, 129.5])


def test_detrend_of_no_elements():
    assert bs.signal.detrend(jnp.zeros((2, 0))).shape == (2, 0)


def test_minimize_names_an_unknown_option():
    with pytest.raises(TypeError, match="options of 'BFGS' are maxiter.*got disp"):
        bs.optimize.minimize(lambda x: x @ x, jnp.ones(2), method="BFGS", options={"disp": True})


DISCRETE = {"bernoulli": (0.5,), "binom": (3, 0.5), "geom": (0.5,), "poisson": (2.0,), "nbinom": (3, 0.5)}


@pytest.mark.parametrize("name", [*DISCRETE, "betabinom"])
def test_the_probability_of_nan_is_nan(name):
    args = DISCRETE.get(name, (3, 1.0, 1.0))
    for function in ("pmf", "logpmf"):
        close(
            getattr(getattr(bs.stats, name), function)(np.nan, *args),
            getattr(getattr(st, name), function)(np.nan, *args),
        )


@pytest.mark.parametrize(
    "name, args", [("poisson", (2.0,)), ("bernoulli", (0.5,)), ("uniform", ()), ("gennorm", (2.0,))]
)
def test_the_cumulative_probability_of_nan_is_nan(name, args):
    x = np.float32([np.nan, 1])
    family, expected = getattr(bs.stats, name), getattr(st, name)
    close(family.cdf(x, *args), expected.cdf(x.astype(np.float64), *args))
    close(jit(lambda x: family.cdf(x, *args))(x), expected.cdf(x.astype(np.float64), *args))


def test_the_density_of_the_uniform_distribution_at_nan_is_nan():
    x = np.float32([np.nan, 0.5, 3])
    for function in ("pdf", "logpdf"):
        close(getattr(bs.stats.uniform, function)(x), getattr(st.uniform, function)(x))


@pytest.mark.parametrize("dtype, rtol", [(np.float16, 2e-3), (jnp.bfloat16, 2e-2)])
def test_distributions_of_short_floats_are_computed_in_float32(dtype, rtol):
    def check(function, oracle, *args):
        args = [jnp.asarray(a, dtype) for a in args]
        got = function(*args)
        assert got.dtype == dtype
        np.testing.assert_allclose(
            np.asarray(got, np.float64), oracle(*(np.asarray(a, np.float64) for a in args)), rtol=rtol
        )

    counts = [90.0, 100, 110]
    check(bs.stats.binom.pmf, st.binom.pmf, counts, 200.0, 0.5)
    check(bs.stats.poisson.pmf, st.poisson.pmf, counts, 100.0)
    check(bs.stats.poisson.entropy, st.poisson.entropy, [1.0, 20, 100])
    check(bs.stats.norm.logpdf, st.norm.logpdf, [300.0, -300])  # the square is more than the largest float16
    check(bs.stats.cauchy.logpdf, st.cauchy.logpdf, [300.0, 49984])
    check(bs.stats.multivariate_normal.pdf, st.multivariate_normal.pdf, [1.0, 3], [0.0, 0], [[1.0, 0], [0, 2]])
    check(bs.stats.dirichlet.pdf, st.dirichlet.pdf, [0.25, 0.75], [30.0, 90])
    got = bs.stats.multinomial.pmf(np.array([257, 257]), 514, jnp.asarray([0.5, 0.5], dtype))
    assert got.dtype == dtype
    np.testing.assert_allclose(float(got), st.multinomial.pmf([257, 257], 514, [0.5, 0.5]), rtol=rtol)


def test_densities_of_large_samples_of_short_floats():
    sample = np.random.default_rng(0).normal(size=10000).astype(np.float32)
    sample16 = jnp.asarray(sample, np.float16)
    close(bs.stats.gaussian_kde(sample16).neff, 10000)
    np.testing.assert_allclose(bs.stats.gaussian_kde(sample16)(0.0), st.gaussian_kde(sample)(0.0), rtol=1e-2)


def test_chi2_and_gamma_far_in_their_upper_tails():
    z = np.float32([1, 20, 43, 44, 85, 95, 180, 400])
    for a in (0.5, 1.0, 3.0, 30.5, 100.0):
        expected = st.gamma.logsf(z.astype(np.float64), a)
        close(bs.stats.gamma.logsf(z, a), expected)
        close(bs.stats.chi2.logsf(2 * z, 2 * a), expected)
    close(bs.stats.gamma.logsf(np.float32([1e3, 1e6]), 1.0), [-1e3, -1e6])
    close(bs.stats.gamma.logsf(1e3, 3.0), np.log(1 + 1e3 + 1e6 / 2) - 1e3)
    close(grad(bs.stats.chi2.logsf)(1000.0, 2.0), -0.5)
    assert bs.stats.chi2.logsf(np.inf, 3.0) == -np.inf and np.isnan(bs.stats.chi2.logsf(np.nan, 3.0))


@pytest.mark.parametrize("df", [0.5, 1.0, 30.0])
def test_densities_of_numbers_whose_squares_overflow(df):
    z = np.float32([-3e38, -1e20, 1e-5, 0.3, 1e6, 1e18, 1e30])
    wide = z.astype(np.float64)
    close(bs.stats.t.logpdf(z, df), st.t.logpdf(wide, df))
    close(bs.stats.cauchy.logpdf(z), st.cauchy.logpdf(wide))
    close(grad(bs.stats.cauchy.logpdf)(1e30) * 1e30, -2)
    assert bs.stats.t.logpdf(np.inf, df) == -np.inf and grad(bs.stats.t.logpdf)(0.0, df) == 0


def test_gumbel_distributions_far_in_their_tails():
    z = np.float32([-300, -80, -20.5, -1, -0.3, 0, 1, 4])
    close(bs.stats.gumbel_l.logcdf(z), st.gumbel_l.logcdf(z.astype(np.float64)))
    close(bs.stats.gumbel_r.logsf(-z), st.gumbel_r.logsf(-z.astype(np.float64)))
    close(grad(bs.stats.gumbel_r.logsf)(300.0), -1)
    for fun, at in ((bs.stats.gumbel_l, np.inf), (bs.stats.gumbel_r, -np.inf)):
        assert fun.logpdf(at) == -np.inf and fun.pdf(at) == 0


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_trends_and_spectra_of_short_floats(dtype):
    x = jnp.asarray(np.arange(256) % 37 - 18, dtype)
    exact = np.asarray(x, np.float64)
    for function in (bs.signal.welch, lambda *args: bs.signal.csd(args[0], args[0], args[1])):
        np.testing.assert_allclose(function(x, 44100.0)[1], ss.welch(exact, 44100.0)[1], rtol=1e-4, atol=1e-10)
    line = jnp.asarray(4.0 * np.arange(64), dtype)
    assert bs.signal.detrend(line).dtype == dtype
    np.testing.assert_allclose(np.asarray(bs.signal.detrend(line), np.float32), 0, atol=1e-3)


@pytest.mark.parametrize("window", ["hann", "hamming", "blackman", "boxcar"])
def test_spectra_of_segments_of_one_sample(window):
    x, options = np.float32([1, 2, 3]), {"nperseg": 1, "noverlap": 0, "window": window}
    close(bs.signal.welch(x, detrend=False, **options)[1], ss.welch(x, detrend=False, **options)[1])
    z = bs.signal.stft(x, **options)[2]
    close(z, ss.stft(x, **options)[2])
    close(bs.signal.istft(z, input_onesided=False, **options)[1], x)


def test_a_list_is_a_window():
    x, window = np.arange(16, dtype=np.float32) % 5, [1.0, 2.0, 2.0, 1.0]
    z = bs.signal.stft(x, window=window, nperseg=4)[2]
    close(z, ss.stft(x, window=window, nperseg=4)[2])
    close(bs.signal.istft(z, window=window)[1], ss.istft(np.asarray(z), window=window)[1])


def test_the_cross_spectrum_with_nothing_is_nothing():
    some, nothing = np.ones((2, 8), np.float32), np.ones((2, 0), np.float32)
    for x, y in ((some, nothing), (nothing, some)):
        for ours, expected in zip(bs.signal.csd(x, y), ss.csd(x, y), strict=True):
            assert ours.shape == expected.shape


@pytest.mark.parametrize("dtype", [np.complex64, np.float16, jnp.bfloat16])
def test_the_nearest_code_of_complex_numbers_and_short_floats(dtype):
    obs = jnp.array([[1000.0, 0], [3, 4], [2, 2]]).astype(dtype)
    codes = jnp.array([[0.0, 0], [400, 0], [2, 2]]).astype(dtype)
    index, distance = bs.cluster.vq.vq(obs, codes)
    assert index.tolist() == [1, 2, 2] and distance.dtype == jnp.real(obs).dtype
    np.testing.assert_allclose(np.asarray(distance, np.float64), [600, 5**0.5, 0], rtol=4e-3)
    if dtype == np.complex64:
        index, distance = bs.cluster.vq.vq(jnp.array([1j, 2.0]), jnp.array([0.0, 1.0, 2j]))
        assert index.tolist() == [0, 1] and distance.tolist() == [1, 1]


def test_a_vector_is_a_list_of_points_of_a_grid():
    line, plane = (np.arange(2.0),), (np.arange(2.0), np.arange(2.0))
    for grid, values, at in (
        (line, np.arange(2.0), [0.5]),
        (line, np.arange(2.0), [0.5, 0.25]),
        (plane, np.arange(4.0).reshape(2, 2), [0.5, 0.25]),
        (plane, np.arange(4.0).reshape(2, 2), [0.5, 0.25, 1, 0]),
        (plane, np.arange(4.0).reshape(2, 2), []),
    ):
        expected = scipy.interpolate.RegularGridInterpolator(grid, values)(np.array(at))
        close(bs.interpolate.RegularGridInterpolator(grid, values)(np.array(at)), expected)
        assert bs.interpolate.RegularGridInterpolator(grid, values)(np.array(at)).shape == expected.shape
    with pytest.raises(ValueError, match="dimension 3, but the interpolator has 2"):
        bs.interpolate.RegularGridInterpolator(plane, np.arange(4.0).reshape(2, 2))(np.zeros(3))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, np.float16])
def test_places_between_points_of_a_short_dtype_keep_their_precision(dtype):
    of = bs.interpolate.RegularGridInterpolator((jnp.arange(3, dtype=dtype),), np.arange(3, dtype=np.float32))
    close(of(np.float32([1.1234567, 2.0001])), [1.1234567, np.nan])


def test_minimize_does_not_count_steps_where_the_gradient_is_nan():
    result = bs.optimize.minimize(lambda x: jnp.sum(x) * jnp.nan, jnp.ones(2), method="BFGS")
    assert not result.success and result.status == 3


def test_the_standard_error_of_many_short_floats():
    x = (jnp.arange(70000) % 2).astype(np.float16)
    np.testing.assert_allclose(bs.stats.sem(x, nan_policy="omit"), st.sem(np.asarray(x, np.float64)), rtol=1e-2)


def test_a_sample_for_a_density_has_one_or_two_axes():
    with pytest.raises(ValueError, match=r"shape \[d, n\] or \[n\], got \(2, 3, 4\)"):
        bs.stats.gaussian_kde(jnp.ones((2, 3, 4)))


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_rotations_of_short_floats(dtype):
    Rotation = bs.spatial.transform.Rotation
    q = jnp.array([100.0, 200, 300, 400]).astype(dtype)
    unit = np.array([1, 2, 3, 4]) / 30**0.5
    for rotation in (Rotation.from_quat(q), Rotation.from_quat(jnp.stack([q, q])).mean()):
        assert rotation.quat.dtype == dtype
        np.testing.assert_allclose(np.asarray(rotation.as_quat(canonical=True), np.float64), unit, rtol=1e-2)
    turn = np.asarray(Rotation.from_rotvec(jnp.array([300.0, 0, 0], dtype)).quat, np.float64)
    np.testing.assert_allclose(turn, [np.sin(150), 0, 0, np.cos(150)], atol=1e-2)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_integers_at_coordinates_in_a_short_dtype(dtype):
    image = jnp.array([100000, 200001, 7])
    assert bs.ndimage.map_coordinates(image, [jnp.array([0.5, 1.25], dtype)], 1).tolist() == [150000, 150002]


def test_cosine_transforms_along_one_axis_given_as_a_number():
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    close(bs.fft.dctn(x, s=2, axes=0), scipy.fft.dctn(x, s=2, axes=0))
    close(bs.fft.idctn(x, axes=1), scipy.fft.idctn(x, axes=1))
