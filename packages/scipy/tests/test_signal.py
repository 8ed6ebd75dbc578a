"""Signals, transforms, images and interpolation against SciPy in float64."""

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.ndimage
import scipy.signal as ss

import bedrax.numpy as jnp
from bedrax import scipy as bs
from bedrax.autodiff import check_grads
from bedrax.batching import vmap
from bedrax.core import config, dtypes
from bedrax.core.jitting import jit


@pytest.fixture(autouse=True)
def float64():
    with config.enable_x64(True):
        yield


RNG = np.random.default_rng(0)
IMAGE, KERNEL = RNG.standard_normal((6, 7)), RNG.standard_normal((3, 4))
LONG, SHORT = RNG.standard_normal(11), RNG.standard_normal(4)


def close(actual, expected):
    actual, expected = (x if isinstance(x, tuple) else (x,) for x in (actual, expected))
    for x, y in zip(actual, expected, strict=True):
        assert x.shape == np.shape(y)
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("method", ["direct", "fft"])
@pytest.mark.parametrize(
    "x,y",
    [(LONG, SHORT), (SHORT, LONG), (IMAGE, KERNEL), (LONG + 1j * LONG**2, 1j * SHORT)],
    ids=["1d", "swapped", "2d", "complex"],
)
def test_convolution(x, y, mode, method):
    close(bs.signal.convolve(x, y, mode=mode, method=method), ss.convolve(x, y, mode=mode))
    close(bs.signal.correlate(x, y, mode=mode, method=method), ss.correlate(x, y, mode=mode))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolution_of_matrices(mode):
    close(bs.signal.convolve2d(IMAGE, KERNEL, mode=mode), ss.convolve2d(IMAGE, KERNEL, mode=mode))
    close(bs.signal.correlate2d(IMAGE, KERNEL, mode=mode), ss.correlate2d(IMAGE, KERNEL, mode=mode))
    close(
        bs.signal.fftconvolve(IMAGE, IMAGE[:, :3], mode=mode, axes=1),
        ss.fftconvolve(IMAGE, IMAGE[:, :3], mode=mode, axes=1),
    )


def test_wrong_arguments_of_convolutions_are_refused():
    with pytest.raises(ValueError, match="one input fits into the other, got shapes"):
        bs.signal.convolve(np.ones((2, 3)), np.ones((3, 2)), mode="valid")
    with pytest.raises(ValueError, match="method"):
        bs.signal.convolve(LONG, SHORT, method="slow")
    with pytest.raises(NotImplementedError, match="boundary"):
        bs.signal.convolve2d(IMAGE, KERNEL, boundary="wrap")


def test_trends():
    for bp in (0, [3, 5]):
        close(bs.signal.detrend(IMAGE, axis=0, bp=bp), ss.detrend(IMAGE, axis=0, bp=bp))
    close(bs.signal.detrend(IMAGE, type="constant"), ss.detrend(IMAGE, type="constant"))


X, Y = RNG.standard_normal((2, 50)), RNG.standard_normal((2, 40))


def test_frequencies_and_times_have_the_precision_of_the_samples():
    with config.enable_x64(True):
        for dtype in (np.float32, np.float64):
            x, z = np.ones(64, dtype), np.ones((5, 3), dtypes.to_complex_dtype(dtype))
            results = [*bs.signal.stft(x, nperseg=8), *bs.signal.csd(x, x, nperseg=8), *bs.signal.welch(x, nperseg=8)]
            assert {r.real.dtype for r in [*results, *bs.signal.istft(z)]} == {np.dtype(dtype)}


@pytest.mark.parametrize(
    "options",
    [
        {"nperseg": 8},
        {"nperseg": 9, "noverlap": 3, "nfft": 16, "fs": 2.0},
        {"nperseg": 8, "window": "hamming"},
        {"nperseg": 8, "window": ("kaiser", 4.0)},
        {"nperseg": 8, "window": np.ones(8)},
        {"nperseg": 8, "return_onesided": False},
    ],
    ids=["hann", "odd", "hamming", "kaiser", "values", "two-sided"],
)
def test_spectra(options):
    for boundary in ("zeros", "even", "odd", "constant", None):
        close(bs.signal.stft(X, boundary=boundary, **options), ss.stft(X, boundary=boundary, **options))
    close(bs.signal.stft(X.T, axis=0, **options), ss.stft(X.T, axis=0, **options))
    close(bs.signal.welch(X.T, axis=0, **options), ss.welch(X.T, axis=0, **options))
    close(bs.signal.csd(X, Y, **options), ss.csd(X, Y, **options))
    more = {"average": "median", "scaling": "spectrum", "detrend": "linear", **options}
    close(bs.signal.csd(X, Y, **more), ss.csd(X, Y, **more))
    z = ss.stft(X[0], **options)[2]
    inverse = {k: v for k, v in options.items() if k != "return_onesided"}
    inverse["input_onesided"] = options.get("return_onesided", True)
    close(bs.signal.istft(z, **inverse), ss.istft(z, **inverse))


@pytest.mark.parametrize("n", [1, 4, 7])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_cosine_transforms(n, norm):
    x = RNG.standard_normal((3, n))
    close(bs.fft.dct(x, norm=norm), scipy.fft.dct(x, norm=norm))
    close(bs.fft.idct(x, norm=norm), scipy.fft.idct(x, norm=norm))
    close(bs.fft.dctn(x, norm=norm, s=(4, 5)), scipy.fft.dctn(x, norm=norm, s=(4, 5)))
    close(bs.fft.idctn(x + 1j, norm=norm, axes=(0,)), scipy.fft.idctn(x + 1j, norm=norm, axes=(0,)))
    with pytest.raises(NotImplementedError, match="type=2"):
        bs.fft.dct(x, type=1)


SCIPY_MODES = {"constant": "grid-constant", "wrap": "grid-wrap"}


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("order", [0, 1])
def test_values_between_pixels(mode, order):
    points = RNG.uniform(-8, 14, (2, 40))
    expected = scipy.ndimage.map_coordinates(IMAGE, points, order=order, mode=SCIPY_MODES.get(mode, mode), cval=0.7)
    close(bs.ndimage.map_coordinates(IMAGE, points, order, mode=mode, cval=0.7), expected)


def test_values_between_pixels_are_differentiable():
    points = [np.array([0.3, 2.6]), np.array([1.2, 4.7])]
    check_grads(lambda image, points: bs.ndimage.map_coordinates(image, points, 1), (IMAGE, points), order=1, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="order"):
        bs.ndimage.map_coordinates(IMAGE, points, 3)
    with pytest.raises(NotImplementedError, match="mode"):
        bs.ndimage.map_coordinates(IMAGE, points, 1, mode="elsewhere")


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill_value", [np.nan, None, 3.0])
def test_interpolation_on_a_grid(method, fill_value):
    grid = (np.sort(RNG.random(6)), np.sort(RNG.random(7)))
    points = RNG.uniform(-0.2, 1.2, (30, 2))
    ours = bs.interpolate.RegularGridInterpolator(grid, IMAGE, method=method, fill_value=fill_value)
    theirs = scipy.interpolate.RegularGridInterpolator(
        grid, IMAGE, method=method, fill_value=fill_value, bounds_error=False
    )
    close(ours(points), theirs(points))
    close(vmap(lambda p: ours(tuple(p)))(points), theirs(points))
    close(jit(lambda f, p: f(p))(ours, points), theirs(points))  # it is a pytree


def test_integration_of_samples():
    close(bs.integrate.trapezoid(IMAGE, dx=0.5, axis=0), scipy.integrate.trapezoid(IMAGE, dx=0.5, axis=0))
    close(
        bs.integrate.trapezoid(jnp.asarray(LONG), np.arange(11.0) ** 2),
        scipy.integrate.trapezoid(LONG, np.arange(11.0) ** 2),
    )
