"""Estimation of densities with Gaussian kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax, pytree, random
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import inexact
from bedrax.numpy.logsumexp import logsumexp
from bedrax.scipy.special import ndtr

__all__ = ["gaussian_kde"]


@pytree.register_pytree_node_class
class gaussian_kde:
    """A density estimated from a sample: the mean of normal densities around its points.

    Args:
      dataset: points in columns, of shape ``[d, n]``, or numbers ``[n]``. Floats narrower than float32 become float32.
      bw_method: the width of the kernels, as a factor of the sample's covariance: "scott" (the default),
        "silverman", a number, or a function of the estimate.
      weights: of the points, of shape ``[n]``; None is equal weights.

    Attributes:
      dataset, weights: the sample (``[d, n]``) and its weights, which add up to 1.
      covariance, inv_cov: of the kernels.
      neff: the effective number of points, ``1 / sum(weights**2)``.

    Examples:

      >>> density = jax.scipy.stats.gaussian_kde(jnp.array([1., 2., 2., 3.]))
      >>> points = jnp.array([0., 2., 4.])
      >>> jnp.argmax(density(points))
      Array(1, dtype=int32)
    """

    _fields = ("neff", "dataset", "weights", "covariance", "inv_cov")

    def __init__(self, dataset: ArrayLike, bw_method: Any = None, weights: ArrayLike | None = None) -> None:
        if weights is None:
            (dataset,) = inexact("gaussian_kde", dataset)
        else:
            dataset, weights = inexact("gaussian_kde", dataset, weights)
        if dtypes.finfo(dataset.dtype).bits < 32:  # the sum of squared weights would be 0
            dataset = dataset.astype(np.float32)
            weights = weights if weights is None else weights.astype(np.float32)
        dataset = jnp.atleast_2d(dataset)
        if jnp.iscomplexobj(dataset):
            raise NotImplementedError(f"gaussian_kde takes real data, got {dataset.dtype}")
        if dataset.ndim != 2:
            raise ValueError(f"gaussian_kde: the dataset has shape [d, n] or [n], got {dataset.shape}")
        if not dataset.size > 1:
            raise ValueError(f"gaussian_kde needs two points at least, got shape {dataset.shape}")
        n = dataset.shape[1]
        if weights is None:
            weights = jnp.full(n, 1 / n, dataset.dtype)
        else:
            weights = jnp.atleast_1d(weights)
            if weights.ndim != 1:
                raise ValueError(f"gaussian_kde: weights is a vector, got shape {weights.shape}")
            if weights.shape[0] != n:
                raise ValueError(f"gaussian_kde: one weight per point, {n}, got {weights.shape[0]}")
            weights = weights / jnp.sum(weights)
        self.dataset = dataset
        self.weights: Any = weights
        self.neff: Array = 1 / jnp.sum(weights * weights)
        factor = self._factor(bw_method)
        center = jnp.sum(dataset * weights[None], axis=1, keepdims=True)
        spread = dataset - center
        covariance = (spread * weights[None]) @ spread.T / (1 - jnp.sum(weights * weights))
        self.covariance: Any = covariance * factor**2
        self.inv_cov: Array = jnp.linalg.inv(covariance) / factor**2

    def _factor(self, method: str | float | Callable | None):
        if method is None or method == "scott":
            return self.neff ** (-1 / (self.d + 4))
        if isinstance(method, str) and method == "silverman":
            return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))
        if isinstance(method, int | float) or (hasattr(method, "ndim") and method.ndim == 0):
            return jnp.asarray(method, self.dataset.dtype)
        if callable(method):
            return jnp.asarray(method(self), self.dataset.dtype)
        raise ValueError(f"gaussian_kde: bw_method is 'scott', 'silverman', a number or a function, got {method!r}")

    def tree_flatten(self) -> Any:
        return tuple(getattr(self, name) for name in self._fields), None

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Any:
        del aux_data
        made = cls.__new__(cls)
        for name, value in zip(cls._fields, children, strict=True):
            setattr(made, name, value)
        return made

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of points."""
        return self.dataset.shape[1]

    def _points(self, points: ArrayLike) -> Array:
        points = jnp.atleast_2d(jnp.asarray(points, self.dataset.dtype))
        if points.shape[0] != self.d:
            if points.shape == (1, self.d):
                return points.reshape(self.d, 1)
            raise ValueError(f"points have dimension {points.shape[0]}, but the dataset has dimension {self.d}")
        return points

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithms of the density at points of shape ``[d, m]``; of shape ``[m]``."""
        points = self._points(x)
        factor = lax.cholesky(self.covariance)
        white = lambda v: lax.triangular_solve(factor, v, left_side=True, lower=True)
        gaps = white(points)[:, :, None] - white(self.dataset)[:, None, :]
        log_norm = self.d / 2 * math.log(2 * math.pi) + jnp.sum(jnp.log(jnp.diagonal(factor)))
        return logsumexp(-0.5 * jnp.sum(gaps * gaps, axis=0), axis=1, b=self.weights) - log_norm

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at points of shape ``[d, m]``; of shape ``[m]``."""
        return jnp.exp(self.logpdf(points))

    def pdf(self, x: ArrayLike) -> Array:
        """The same as `evaluate`."""
        return self.evaluate(x)

    def __call__(self, points: ArrayLike) -> Array:
        return self.evaluate(points)

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the product with the normal density of this mean ``[d]`` and covariance ``[d, d]``."""
        mean = jnp.atleast_1d(jnp.squeeze(jnp.asarray(mean)))
        cov = jnp.atleast_2d(jnp.asarray(cov))
        if mean.shape != (self.d,):
            raise ValueError(f"gaussian_kde: mean has shape ({self.d},), got {mean.shape}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"gaussian_kde: cov has shape {(self.d, self.d)}, got {cov.shape}")
        return _overlap(
            self.dataset, self.weights, mean[:, None], jnp.ones(1, self.dataset.dtype), self.covariance + cov
        )

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The probability of ``[low, high]``, in one dimension."""
        if self.d != 1:
            raise ValueError(f"integrate_box_1d is for data of one dimension, these have {self.d}")
        if jnp.ndim(low) or jnp.ndim(high):
            raise ValueError(
                f"integrate_box_1d: low and high are scalars, got ranks {jnp.ndim(low)} and {jnp.ndim(high)}"
            )
        width = jnp.sqrt(self.covariance[0, 0])
        ends = [ndtr((jnp.asarray(end, self.dataset.dtype) - self.dataset[0]) / width) for end in (low, high)]
        return jnp.sum(self.weights * (ends[1] - ends[0]))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product with another estimate."""
        if other.d != self.d:
            raise ValueError(f"integrate_kde: the estimates have {self.d} and {other.d} dimensions; they must be equal")
        return _overlap(self.dataset, self.weights, other.dataset, other.weights, self.covariance + other.covariance)

    def resample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Points drawn from the estimate, of shape ``[d, *shape]``."""
        which, noise = random.split(key)
        index = random.choice(which, self.n, shape=shape, p=self.weights)
        steps = random.multivariate_normal(
            noise, jnp.zeros(self.d, self.covariance.dtype), self.covariance, shape=shape
        )
        return self.dataset[:, index] + jnp.moveaxis(steps, -1, 0)

    def integrate_box(self, low_bounds: ArrayLike, high_bounds: ArrayLike, maxpts: int | None = None) -> Array:
        """Not implemented: see `integrate_box_1d`."""
        raise NotImplementedError("gaussian_kde integrates over intervals only: see integrate_box_1d")

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Not implemented: an estimate does not change; make another."""
        raise NotImplementedError("gaussian_kde: the bandwidth is chosen when the estimate is made; make another")


def _overlap(points, weights, others, other_weights, cov):
    """``sum_ij w_i v_j N(x_i - y_j; 0, cov)``."""
    factor = lax.cholesky(cov)
    gaps = points[:, :, None] - others[:, None, :]
    d = points.shape[0]
    white = lax.triangular_solve(factor, gaps.reshape(d, -1), left_side=True, lower=True).reshape(gaps.shape)
    log_norm = d / 2 * math.log(2 * math.pi) + jnp.sum(jnp.log(jnp.diagonal(factor)))
    densities = jnp.exp(-0.5 * jnp.sum(white * white, axis=0) - log_norm)
    return weights @ densities @ other_weights
