"""`jax.scipy.interpolate`: interpolation on rectangular grids."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import bedrax.numpy as jnp
from bedrax import pytree
from bedrax.core.array import Array
from bedrax.core.typing import ArrayLike
from bedrax.lax.choices import one_of
from bedrax.numpy.arguments import array, inexact

__all__ = ["RegularGridInterpolator"]


class RegularGridInterpolator:
    """Interpolation of values on the points of a rectangular grid.

    Args:
      points: one sorted vector per axis: the coordinates of the grid, two or more.
      values: of shape ``(len(points[0]), ..., len(points[n - 1]), ...)``.
      method: ``"linear"`` or ``"nearest"``.
      bounds_error: must be False: traced programs cannot raise.
      fill_value: the value outside of the grid; None extrapolates.

    An instance is a pytree, whose leaves are the grid and the values.

    Examples:

      >>> x, y = jnp.array([0., 1.]), jnp.array([0., 10.])
      >>> plane = jax.scipy.interpolate.RegularGridInterpolator((x, y), jnp.array([[0., 1.], [2., 3.]]))
      >>> plane(jnp.array([[0.5, 5.], [1., 0.]]))
      Array([1.5, 2. ], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: float | None = math.nan,
    ) -> None:
        one_of("RegularGridInterpolator", "method", method, ("linear", "nearest"))
        if bounds_error:
            raise NotImplementedError("bounds_error: a traced program cannot raise; use fill_value.")
        (values,) = inexact("RegularGridInterpolator", values)
        if len(points) > values.ndim:
            raise ValueError(f"there are {len(points)} point arrays, but values has {values.ndim} dimensions")
        grid = []
        for i, p in enumerate(points):
            p = array("RegularGridInterpolator", p)
            if p.ndim != 1:
                raise ValueError(f"the points in dimension {i} must be 1-dimensional, got shape {p.shape}")
            if p.shape[0] != values.shape[i]:
                raise ValueError(f"there are {p.shape[0]} points and {values.shape[i]} values in dimension {i}")
            if p.shape[0] < 2:
                raise ValueError(f"there must be at least two points in dimension {i}")
            grid.append(p)
        # Places have the precision of the points, whatever the values are.
        self.grid: tuple[Any, ...] = tuple(inexact("RegularGridInterpolator", *grid))
        self.values = values
        self.method = method
        self.bounds_error = bounds_error
        self.fill_value = fill_value

    def __call__(self, xi: ArrayLike | tuple[ArrayLike, ...], method: str | None = None) -> Array:
        """The values at the points `xi`.

        Args:
          xi: of shape ``[..., n]`` for a grid of n axes, or a tuple of n arrays, which are broadcast. A vector is a list of
            points, as in SciPy: one point gives one value in an array ``[1]``.
          method: another method than that of the instance.
        """
        method = self.method if method is None else method
        one_of("RegularGridInterpolator", "method", method, ("linear", "nearest"))
        n = len(self.grid)
        if isinstance(xi, tuple):
            xi = jnp.stack(jnp.broadcast_arrays(*xi), axis=-1)
        elif jnp.ndim(xi) == 1 and not len(xi) % n:  # a vector is a list of points, as in SciPy
            xi = jnp.reshape(array("RegularGridInterpolator", xi), (-1, n))
        xi = array("RegularGridInterpolator", xi)
        if n == 1 and (xi.ndim == 0 or xi.shape[-1] != 1):
            xi = xi[..., None]
        if xi.shape[-1] != n:
            raise ValueError(f"the points have dimension {xi.shape[-1]}, but the interpolator has {n}")
        *grid, xi = inexact("RegularGridInterpolator", *self.grid, xi)
        out = _interpolate(grid, self.values, xi, method)
        if self.fill_value is None:
            return out
        outside = jnp.zeros(xi.shape[:-1], bool)
        for i, g in enumerate(grid):
            outside = outside | (xi[..., i] < g[0]) | (xi[..., i] > g[-1])
        return jnp.where(outside.reshape(outside.shape + (1,) * (out.ndim - outside.ndim)), self.fill_value, out)


def _interpolate(grid, values, xi, method):
    corners = []
    for i, g in enumerate(grid):
        x = xi[..., i]
        low = jnp.clip(jnp.searchsorted(g, x, side="right") - 1, 0, g.shape[0] - 2)
        share = (x - g[low]) / (g[low + 1] - g[low])
        if method == "nearest":
            corners.append([(jnp.where(share <= 0.5, low, low + 1), None)])
        else:
            corners.append([(low, 1 - share), (low + 1, share)])
    total = None
    for corner in itertools.product(*corners):
        term = values[tuple(index for index, _ in corner)]
        for _, weight in corner:
            if weight is not None:
                term = term * weight.reshape(weight.shape + (1,) * (term.ndim - weight.ndim))
        total = term if total is None else total + term
    # A point with a NaN coordinate has the value NaN.
    lost = jnp.any(jnp.isnan(xi), axis=-1)
    return jnp.where(lost.reshape(lost.shape + (1,) * (total.ndim - lost.ndim)), np.nan, total)


def _flatten(interpolator):
    return (interpolator.grid, interpolator.values, interpolator.fill_value), (
        interpolator.method,
        interpolator.bounds_error,
    )


def _unflatten(aux, children):
    out = object.__new__(RegularGridInterpolator)
    out.grid, out.values, out.fill_value = children
    out.method, out.bounds_error = aux
    return out


pytree.register_pytree_node(RegularGridInterpolator, _flatten, _unflatten)
