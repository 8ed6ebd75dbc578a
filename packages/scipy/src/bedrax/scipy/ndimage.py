"""`jax.scipy.ndimage`: values of images between their pixels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import array, counting

__all__ = ["map_coordinates"]


def _reflected(index, size: int):
    """...cba|abc|cba..."""
    index = jnp.where(index < 0, -1 - index, index) % (2 * size)
    return jnp.where(index >= size, 2 * size - 1 - index, index)


def _mirrored(index, size: int):
    """...cb|abc|ba..."""
    if size == 1:
        return jnp.zeros_like(index)
    index = abs(index) % (2 * size - 2)
    return jnp.where(index >= size, 2 * size - 2 - index, index)


# The maps of an index outside of the image to an index inside, by mode.
_INSIDE = {
    "constant": lambda index, size: jnp.clip(index, 0, size - 1),
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirrored,
    "reflect": _reflected,
}


@one_program(static=("order", "mode"), everywhere=True)
def _map_coordinates(image, coordinates, cval, *, order, mode):
    # Each axis gives one or two (index, weight, whether it is inside) and the sum runs over their combinations.
    choices = []
    for x, size in zip(coordinates, image.shape, strict=True):
        if dtypes.is_integer(x.dtype):
            x = counting(x, 2 * size)  # `reflect` computes with twice the size
            corners = [(x, None)]
        elif order == 0:
            corners = [(jnp.floor(x + 0.5).astype(np.int32), None)]
        else:
            low = jnp.floor(x)
            high_weight = x - low
            if dtypes.is_integer(image.dtype):  # else the products of integers have the precision of a short float
                high_weight = high_weight.astype(np.promote_types(x.dtype, np.float32))
            low = low.astype(np.int32)
            corners = [(low, 1 - high_weight), (low + 1, high_weight)]
        choices.append([(_INSIDE[mode](i, size), w, (i >= 0) & (i < size)) for i, w in corners])
    total = None
    for corner in itertools.product(*choices):
        values = image[tuple(index for index, _, _ in corner)]
        if mode == "constant":
            inside = corner[0][2]
            for _, _, more in corner[1:]:
                inside = inside & more
            values = jnp.where(inside, values, cval)
        for _, weight, _ in corner:
            if weight is not None:
                values = values * weight
        total = values if total is None else total + values
    if dtypes.is_integer(image.dtype):
        total = jnp.round(total) if dtypes.is_inexact(total.dtype) else total
    return total.astype(image.dtype)


def map_coordinates(
    input: ArrayLike, coordinates: Sequence[ArrayLike], order: int, mode: str = "constant", cval: ArrayLike = 0.0
) -> Array:
    """The values of an image at coordinates between its pixels.

    Args:
      input: the image, an array of any rank.
      coordinates: one array per axis of the image, all of one shape, in pixels.
      order: 0: the nearest pixel; 1: linear interpolation.
      mode: outside of the image: ``"constant"`` (`cval`), ``"nearest"`` pixel, ``"wrap"`` (periodic), ``"mirror"`` about
        the outermost pixels, ``"reflect"`` about their edges.
      cval: the value outside, for "constant".

    Returns:
      An array of the shape of the coordinates and the dtype of the image.

    Raises:
      NotImplementedError: another order, or another mode.

    Examples:

      >>> x = jnp.array([[0., 1.], [10., 11.]])
      >>> jax.scipy.ndimage.map_coordinates(x, [jnp.array([0.5, 1.]), jnp.array([0.5, 0.])], order=1)
      Array([ 5.5, 10. ], dtype=float32)
    """
    image = array("map_coordinates", input)
    if mode not in _INSIDE:
        raise NotImplementedError(f"map_coordinates: mode is one of {', '.join(_INSIDE)}, got {mode!r}")
    if order not in (0, 1):
        raise NotImplementedError(f"map_coordinates: order is 0 or 1, got {order}; there are no spline filters")
    coordinates = [array("map_coordinates", c) for c in coordinates]
    if len(coordinates) != image.ndim:
        raise ValueError(f"map_coordinates: one array per axis of the image, {image.ndim}, got {len(coordinates)}")
    if image.ndim == 0:
        raise ValueError("map_coordinates: the image must have at least one axis")
    return _map_coordinates(image, tuple(coordinates), lax.asarray(cval).astype(image.dtype), order=order, mode=mode)
