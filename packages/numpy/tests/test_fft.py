"""Fourier transforms against NumPy, and their derivatives."""

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax.autodiff import jvp, vjp
from bedrax.batching import vmap
from bedrax.numpy import fft


def test_frequencies_of_a_negative_number_of_points_are_empty():
    assert fft.fftfreq(-4).shape == fft.rfftfreq(-4).shape == (0,)


def draw(*shape, dtype=np.float32, seed=0):
    x = np.random.default_rng([seed, *shape]).standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * np.random.default_rng([seed + 1, *shape]).standard_normal(shape)
    return x.astype(dtype)


def check(name, *args, **kwargs):
    found, expected = np.asarray(getattr(fft, name)(*args, **kwargs)), getattr(np.fft, name)(*args, **kwargs)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


C = draw(3, 4, 5, dtype=np.complex64)
NORMS = [None, "ortho", "forward", "backward"]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft"])
def test_complex(name, norm):
    check(name, C, norm=norm)
    check(name, C, n=7, axis=0, norm=norm)
    check(name, C, n=2, axis=1, norm=norm)
    check(name, draw(4), norm=norm)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["rfft", "ihfft", "irfft", "hfft"])
def test_real(name, norm):
    x = draw(3, 5) if name in ("rfft", "ihfft") else C
    check(name, x, norm=norm)
    check(name, x, n=7, axis=0, norm=norm)


@pytest.mark.parametrize("norm", NORMS)
def test_many_axes(norm):
    for name in ("fftn", "ifftn", "irfftn"):
        check(name, C, norm=norm)
        check(name, C, s=(4, 3), axes=(0, 2), norm=norm)
    for name in ("rfftn", "fftn", "irfftn"):
        check(name, draw(2, 3, 4, 2, 5), norm=norm)
    check("rfftn", draw(3, 4, 5), axes=(2, 0), norm=norm)


def test_two_axes():
    check("rfft2", draw(3, 4, 5))
    check("irfft2", C)
    check("fft2", C, axes=(0, 1))
    check("ifft2", C)


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies_and_shifts(n):
    check("fftfreq", n, 0.5)
    check("rfftfreq", n)
    check("fftshift", draw(n))
    check("ifftshift", draw(n, 3), axes=1)
    check("fftshift", draw(n, 3))
    assert fft.rfftfreq(n, dtype=np.float16).dtype == np.float16


@pytest.mark.parametrize(
    "call,text",
    [
        (lambda: fft.fft(draw(3), norm="x"), "norm is one of None"),
        (lambda: fft.rfft(C), "only real valued"),
        (lambda: fft.fft(np.float32(1)), "out of bounds"),
        (lambda: fft.fft(draw(3), n=0), "positive"),
        (lambda: fft.fft2(C, axes=(0,)), "transforms two axes"),
        (lambda: fft.fftn(C, axes=(0, 0)), "transformed once"),
        (lambda: fft.fft(C, axis=(0, 1)), "transforms one axis"),
        (lambda: fft.fftfreq([3]), "n is an int"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("name", ["rfft", "irfft"])
@pytest.mark.parametrize("n", [6, 7])
def test_derivatives(name, n):
    f = lambda x: getattr(fft, name)(x, n=n, norm="ortho")
    x, t = (draw(5, seed=i) if name == "rfft" else draw(5, dtype=np.complex64, seed=i) for i in (0, 7))
    out, change = jvp(f, (x,), (t,))
    np.testing.assert_allclose(change, getattr(np.fft, name)(t, n, norm="ortho"), rtol=1e-4, atol=1e-4)
    ct = draw(*out.shape, dtype=out.dtype, seed=3)
    (back,) = vjp(f, x)[1](ct)
    np.testing.assert_allclose(np.sum(np.real(ct * change)), np.sum(np.real(back * t)), rtol=1e-3, atol=1e-3)


def test_vmap():
    np.testing.assert_allclose(
        vmap(fft.fft, in_axes=1, out_axes=1)(C), np.fft.fft(C.swapaxes(0, 1)).swapaxes(0, 1), rtol=1e-4, atol=1e-4
    )
    assert jnp.fft is fft
