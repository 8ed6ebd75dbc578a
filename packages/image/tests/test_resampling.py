"""Resampling of images against loops in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from bedrax import image
from bedrax import numpy as jnp
from bedrax.autodiff import grad


def _kernel(name):
    def cubic(x):
        a = -0.5
        if x < 1:
            return (a + 2) * x**3 - (a + 3) * x**2 + 1
        return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0

    def lanczos(r):
        return lambda x: np.sinc(x) * np.sinc(x / r) if x <= r else 0.0

    return {"linear": lambda x: max(0.0, 1 - x), "cubic": cubic, "lanczos3": lanczos(3), "lanczos5": lanczos(5)}[name]


def _line(x, n, scale, shift, kernel, antialias):
    out = np.zeros(n)
    for i in range(n):
        center = (i + 0.5 - shift) / scale - 0.5
        width = max(1 / scale, 1) if antialias else 1
        w = np.array([kernel(abs(center - j) / width) for j in range(len(x))])
        if -0.5 <= center <= len(x) - 0.5:
            out[i] = w @ x / w.sum()
    return out


@pytest.mark.parametrize("method", ["linear", "cubic", "lanczos3", "lanczos5"])
@pytest.mark.parametrize("n", [3, 5, 11])
@pytest.mark.parametrize("antialias", [True, False])
def test_resize_of_a_line(method, n, antialias):
    x = np.random.RandomState(1).standard_normal(7).astype(np.float32)
    expected = _line(x, n, n / 7, 0.0, _kernel(method), antialias)
    got = image.resize(x, (n,), method, antialias=antialias)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_resize_of_images():
    x = np.random.RandomState(2).standard_normal((2, 6, 4, 3)).astype(np.float32)
    got = image.resize(x, (2, 3, 8, 3), "bilinear")
    by_axis = np.apply_along_axis(lambda v: _line(v, 3, 0.5, 0, _kernel("linear"), True), 1, x)
    by_axis = np.apply_along_axis(lambda v: _line(v, 8, 2.0, 0, _kernel("linear"), True), 2, by_axis)
    np.testing.assert_allclose(got, by_axis, rtol=1e-4, atol=1e-5)
    near = image.resize(np.arange(6), (3,), "nearest")
    assert near.dtype == jnp.int32
    np.testing.assert_array_equal(near, [1, 3, 5])
    np.testing.assert_array_equal(image.resize(np.arange(3), (6,), image.ResizeMethod.NEAREST), [0, 0, 1, 1, 2, 2])
    area = image.resize(np.arange(6.0, dtype=np.float32), (2,), "area")
    np.testing.assert_allclose(area, [1.0, 4.0], rtol=1e-6)
    np.testing.assert_allclose(image.resize(np.array([0.0, 3.0], np.float32), (3,), "area"), [0, 1.5, 3], rtol=1e-6)
    assert image.resize(np.arange(4), (2,), "linear").dtype == jnp.float32
    assert image.resize(jnp.ones(4, jnp.bfloat16), (2,), "cubic").dtype == jnp.bfloat16
    pytorch = image.resize(
        np.array([0.0, 1.0, 0.0], np.float32), (5,), image.ResizeMethod.CUBIC_PYTORCH, antialias=False
    )
    keys = image.resize(np.array([0.0, 1.0, 0.0], np.float32), (5,), image.ResizeMethod.CUBIC, antialias=False)
    assert abs(float(pytorch[1] - keys[1])) > 1e-3 and float(pytorch[2]) == pytest.approx(1.0)


def test_scale_and_translate():
    x = np.random.RandomState(3).standard_normal((6, 2)).astype(np.float32)
    got = image.scale_and_translate(x, (9, 2), (0,), jnp.array([1.5]), jnp.array([2.0]), "cubic")
    expected = np.stack([_line(c, 9, 1.5, 2.0, _kernel("cubic"), True) for c in x.T], 1)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)

    def total(shift):
        moved = image.scale_and_translate(x, (6, 2), (0,), jnp.array([1.0]), shift, "linear")
        return jnp.sum(moved[2:4] ** 2)

    at, step = np.array([0.3], np.float32), 1e-2
    slope = (total(at + step) - total(at - step)) / (2 * step)
    np.testing.assert_allclose(grad(total)(at)[0], slope, rtol=1e-2)


def test_errors_of_resize():
    with pytest.raises(
        ValueError, match="there are linear, bilinear, trilinear, triangle, cubic, bicubic, tricubic, nearest, lanczos"
    ):
        image.resize(np.ones(3), (2,), "sharp")
    with pytest.raises(ValueError, match="shape has one entry per axis of the image, of shape"):
        image.resize(np.ones((3, 3)), (2,), "linear")
    with pytest.raises(ValueError, match="not currently supported"):
        image.scale_and_translate(np.ones(3), (3,), (0,), np.ones(1), np.ones(1), "nearest")
    with pytest.raises(ValueError, match="spatial_dims"):
        image.scale_and_translate(np.ones((3, 3)), (3, 4), (0,), np.ones(1), np.ones(1), "linear")


def test_places_are_not_rounded_to_short_floats():
    picture = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    scale, moved = np.float32([0.58, 0.42]), np.float32([0.58, 0.42])
    expected = image.scale_and_translate(picture, (3, 4), (0, 1), scale, moved, "linear")
    short = image.scale_and_translate(
        picture, (3, 4), (0, 1), scale.astype(jnp.bfloat16), moved.astype(jnp.bfloat16), "linear"
    )
    assert np.any(np.asarray(expected)) and np.allclose(short, expected, atol=0.05)


def test_wrong_dimensions_and_scales_are_refused():
    picture, two = jnp.ones((2, 2)), jnp.full(2, 2.0)
    for dims, scale, moved in (
        ((0, 3), two, jnp.zeros(2)),
        ((0, 0), two, jnp.zeros(2)),
        ((0, 1), two[:1], jnp.zeros(2)),
        ((0, 1), two, jnp.zeros(1)),
        ((0, 1), 2.0, jnp.zeros(2)),
    ):
        with pytest.raises(ValueError, match="out of bounds|duplicate|one element per"):
            image.scale_and_translate(picture, (4, 4), dims, scale, moved, "linear")
    found = image.scale_and_translate(picture, (4, 4), (0, -1), two, jnp.zeros(2), "linear")
    np.testing.assert_array_equal(
        found, image.scale_and_translate(picture, (4, 4), (0, 1), two, jnp.zeros(2), "linear")
    )
