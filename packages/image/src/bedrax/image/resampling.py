"""Resampling of images (`jax.image`): every axis is multiplied by a matrix of weights.

The weights are those of the operation ScaleAndTranslate of TensorFlow: pixel centers are at half integers, an output
pixel ``i`` is computed from the input around ``(i + 1/2 - translation) / scale``, and the weights of a kernel around
that position are normalized. Antialiasing widens the kernel if the image is made smaller.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax import lax
from bedrax import numpy as jnp
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.numpy.arguments import array, axes_tuple


class ResizeMethod(enum.Enum):
    """The kernels of `resize`.

    Examples:

      >>> jax.image.resize(jnp.array([1., 3.]), (4,), jax.image.ResizeMethod.NEAREST)
      Array([1., 1., 3., 3.], dtype=float32)
    """

    # The public members and their values.
    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name: ``nearest linear bilinear trilinear triangle cubic bicubic tricubic lanczos3 ...``.

        Raises:
          ValueError: the name is unknown.
        """
        try:
            return _NAMES[s]
        except KeyError:
            raise ValueError(f"no method is named {s!r}; there are {', '.join(_NAMES)}") from None


_NAMES = {
    **{n: ResizeMethod.LINEAR for n in ("linear", "bilinear", "trilinear", "triangle")},
    **{n: ResizeMethod.CUBIC for n in ("cubic", "bicubic", "tricubic")},
    "nearest": ResizeMethod.NEAREST,
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "area": ResizeMethod.AREA,
}


def _triangle(x):
    return jnp.maximum(0, 1 - x)


def _cubic(a: float) -> Callable:
    """Convolution kernel of R. Keys, "Cubic convolution interpolation for digital image processing" (1981)."""

    def kernel(x):
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return jnp.where(x >= 2, 0, jnp.where(x >= 1, far, near))

    return kernel


def _lanczos(radius: int) -> Callable:
    def kernel(x):
        return jnp.where(x > radius, 0, jnp.sinc(x) * jnp.sinc(x / radius))

    return kernel


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.75),
    ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5),
}


def _weights(size, out_size, scale, translation, kernel: Callable, antialias: bool):
    """Matrix of shape ``[out_size, size]``."""
    dtype = scale.dtype
    inverse = 1 / scale
    width = jnp.maximum(inverse, 1) if antialias else jnp.ones_like(inverse)
    centers = (jnp.arange(out_size, dtype=dtype) + 0.5 - translation) * inverse - 0.5
    distance = jnp.abs(centers[:, None] - jnp.arange(size, dtype=dtype)[None, :]) / width
    weights = kernel(distance).astype(dtype)
    total = jnp.sum(weights, axis=1, keepdims=True)
    tiny = jnp.abs(total) <= 1000 * float(dtypes.finfo(dtype).eps)
    weights = jnp.where(tiny, 0, weights / jnp.where(tiny, 1, total))
    inside = (centers >= -0.5) & (centers <= size - 0.5)
    return jnp.where(inside[:, None], weights, 0)


def _areas(size, out_size, dtype):
    """The part of every output pixel that each input pixel covers: ``[out_size, size]``."""
    step = size / out_size
    start = jnp.arange(out_size, dtype=dtype)[:, None] * step
    pixel = jnp.arange(size, dtype=dtype)[None, :]
    overlap = jnp.minimum(start + step, pixel + 1) - jnp.maximum(start, pixel)
    return jnp.maximum(overlap, 0) / step


def _apply(x, matrices: dict[int, Any], precision):
    for axis, w in matrices.items():
        # As the right factor, x has its axis moved to the front: elements that were neighbours stay neighbours.
        x = jnp.moveaxis(jnp.tensordot(w.astype(x.dtype), x, ((1,), (axis,)), precision=precision), 0, axis)
    return x


def _method(method) -> ResizeMethod:
    return ResizeMethod.from_string(method) if isinstance(method, str) else ResizeMethod(method)


def _shape(image: Any, shape: Sequence[int]) -> tuple:
    """The shape of a result, after checks."""
    shape = tuple(shape)
    if len(shape) != image.ndim:
        raise ValueError(f"shape has one entry per axis of the image, of shape {image.shape}; got {shape}")
    if any(dims.is_constant_dim(n) and n < 0 for n in shape):
        raise ValueError(f"sizes are not negative, got {shape}")
    return shape


@one_program(static=("shape", "spatial_dims", "method", "antialias", "precision"))
def scale_and_translate(
    image: Any,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: Any,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """Resample an image after scaling and translating it.

    Args:
      image: an array.
      shape: the shape of the result; equal to the image's shape outside `spatial_dims`.
      spatial_dims: the axes that are resampled.
      scale, translation: arrays with an element for each of these axes; differentiable.
      method: a `ResizeMethod` or its name, other than ``"nearest"``.
      antialias: widen the kernel if the image is made smaller.
      precision: the precision of the products.

    Returns:
      An array of `shape`; zero for positions outside of the image.

    Examples:

      >>> x = jnp.array([1., 2., 3., 4.])
      >>> moved = jax.image.scale_and_translate(
      ...     x, (4,), (0,), scale=jnp.array([1.]), translation=jnp.array([1.]), method="linear"
      ... )
      >>> moved
      Array([0., 1., 2., 3.], dtype=float32)
    """
    image = array("scale_and_translate", image)
    shape = _shape(image, shape)
    method = _method(method)
    if method not in _KERNELS:
        what = "Nearest neighbor" if method is ResizeMethod.NEAREST else "Area"
        raise ValueError(f"{what} resampling is not currently supported for scale_and_translate.")
    spatial_dims = axes_tuple(tuple(spatial_dims), image.ndim)
    for i, (a, b) in enumerate(zip(image.shape, shape, strict=True)):
        if i not in spatial_dims and not dims.same_dim(a, b):
            raise ValueError(
                f"scale_and_translate: axis {i} is not among the spatial_dims, so its size stays {a}; got {b}"
            )
    (image,) = _inexact(image)
    # Positions in the image need at least the precision of float32.
    scale, translation = (x.astype(np.float32) if x.dtype.itemsize < 4 else x for x in _inexact(scale, translation))
    for name, x in (("scale", scale), ("translation", translation)):
        if x.shape != (len(spatial_dims),):
            raise ValueError(
                f"scale_and_translate: {name} has one element per spatial dimension, {len(spatial_dims)}; got shape {x.shape}"
            )
    matrices = {
        d: _weights(image.shape[d], shape[d], scale[i], translation[i], _KERNELS[method], antialias)
        for i, d in enumerate(spatial_dims)
    }
    return _apply(image, matrices, precision)


def _inexact(*xs):
    return [jnp.asarray(x, dtypes.to_inexact_dtype(jnp.result_type(x))) for x in xs]


@one_program(static=("shape", "method", "antialias", "precision"))
def resize(
    image: Any, shape: Sequence[int], method: Any, antialias: bool = True, precision: Any = lax.Precision.HIGHEST
) -> Array:
    """Resample an image to another shape.

    Args:
      image: an array.
      shape: the shape of the result; axes of unchanged size are not resampled.
      method: a `ResizeMethod` or its name: ``"nearest"`` (keeps the dtype), ``"linear"`` (or ``"bilinear"``,
        ``"trilinear"``, ``"triangle"``), ``"cubic"`` (Keys), ``"lanczos3"``, ``"lanczos5"``,
        ``"area"``.
      antialias: widen the kernel if the image is made smaller.
      precision: the precision of the products.

    Returns:
      An array of `shape`.

    Examples:

      >>> x = jnp.array([[0., 4.], [8., 12.]])
      >>> jax.image.resize(x, (2, 4), "nearest")
      Array([[ 0.,  0.,  4.,  4.],
             [ 8.,  8., 12., 12.]], dtype=float32)
      >>> jax.image.resize(x, (1, 1), "linear")
      Array([[6.]], dtype=float32)
    """
    image = array("resize", image)
    shape = _shape(image, shape)
    method = _method(method)
    changed = [i for i, (a, b) in enumerate(zip(image.shape, shape, strict=True)) if not dims.same_dim(a, b)]
    if method is ResizeMethod.NEAREST:
        for d in changed:
            places = (jnp.arange(shape[d], dtype=np.float32) + 0.5) * image.shape[d] / shape[d]
            image = jnp.take(image, jnp.floor(places).astype(np.int32), axis=d, mode="clip")
        return image
    (image,) = _inexact(image)
    dtype = np.dtype(np.float32) if image.dtype.itemsize < 4 else jnp.finfo(image.dtype).dtype
    matrices = {}
    for d in changed:
        if method is ResizeMethod.AREA:
            matrices[d] = _areas(image.shape[d], shape[d], dtype)
            continue
        scale = jnp.asarray(shape[d] / image.shape[d] if image.shape[d] else 1.0, dtype)
        matrices[d] = _weights(image.shape[d], shape[d], scale, jnp.zeros((), dtype), _KERNELS[method], antialias)
    return _apply(image, matrices, precision)


__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
