"""Statistics of samples: ranks, the most frequent value, the standard error of the mean."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax.choices import one_of
from bedrax.numpy.arguments import array, axis_index, inexact

__all__ = ["ModeResult", "mode", "rankdata", "sem"]


class ModeResult(NamedTuple):
    """Result of `mode`."""

    mode: Array
    count: Array


def _check_policy(name: str, policy: str, supported: tuple[str, ...]) -> None:
    one_of(name, "nan_policy", policy, ("propagate", "omit", "raise"))
    if policy not in supported:
        raise NotImplementedError(f"{name}: nan_policy={policy!r} is not implemented; use one of {supported}.")


@one_program(static=("axis", "nan_policy", "keepdims"))
def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent value along an axis, the smallest one of several, and the number of its occurrences.

    Args:
      a: array. NaN counts as a value, equal to itself.
      axis: the axis; None: of the flattened array.
      nan_policy: "propagate"; others are not implemented.
      keepdims: keep the reduced axis with length 1.

    Examples:

      >>> jax.scipy.stats.mode(jnp.array([3, 1, 3, 2])).mode
      Array(3, dtype=int32)
    """
    _check_policy("mode", nan_policy, ("propagate",))
    a = array("mode", a)
    ndim = a.ndim
    if axis is None or not ndim:
        a, axis = a.reshape(-1), axis_index(axis or 0, 1)
    else:
        axis = axis_index(axis, ndim)
    a = jnp.moveaxis(a, axis, -1)
    n = a.shape[-1]
    kind = dtypes.default_int_dtype()
    if dims.is_constant_dim(n) and n == 0:
        values = jnp.full(a.shape[:-1], jnp.nan, dtypes.to_inexact_dtype(a.dtype))
        counts = jnp.zeros(a.shape[:-1], kind)
    else:
        a = jnp.sort(a, axis=-1)
        index = lax.broadcasted_iota(kind, a.shape, a.ndim - 1)
        same = (a[..., 1:] == a[..., :-1]) | (jnp.isnan(a[..., 1:]) & jnp.isnan(a[..., :-1]))
        begins = jnp.concatenate([jnp.ones((*a.shape[:-1], 1), bool), ~same], axis=-1)
        # The distance of each element from the start of its run: greatest at the end of the longest run.
        run = index - lax.cummax(jnp.where(begins, index, 0), axis=a.ndim - 1)
        best = jnp.argmax(run, axis=-1, keepdims=True)
        values = jnp.take_along_axis(a, best, axis=-1)[..., 0]
        counts = jnp.take_along_axis(run, best, axis=-1)[..., 0] + 1
    if keepdims:
        if ndim != a.ndim:
            shape = (1,) * ndim
            values, counts = values.reshape(shape), counts.reshape(shape)
        else:
            values, counts = jnp.expand_dims(values, axis), jnp.expand_dims(counts, axis)
    return ModeResult(values, counts)


@one_program(static=("method", "axis", "nan_policy"))
def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """Ranks, from 1.

    Args:
      a: array. Where it has a NaN, all ranks of its row are NaN.
      method: of equal elements: "average", "min", "max" rank, "dense" (as "min", without gaps), "ordinal" (different
        ranks, in order of occurrence).
      axis: rank along it; None: the flattened array, whose shape the result has.
      nan_policy: "propagate"; others are not implemented.

    Returns:
      Floats.

    Examples:

      >>> jax.scipy.stats.rankdata(jnp.array([30, 10, 20, 10]))
      Array([4. , 1.5, 3. , 1.5], dtype=float32)
    """
    _check_policy("rankdata", nan_policy, ("propagate",))
    one_of("rankdata", "method", method, ("average", "min", "max", "dense", "ordinal"))
    a = array("rankdata", a)
    if axis is None:
        a, axis = a.reshape(-1), 0
    axis = axis_index(axis, a.ndim)
    a = jnp.moveaxis(a, axis, -1)
    dtype = dtypes.default_float_dtype()
    index = lax.broadcasted_iota(dtypes.default_int_dtype(), a.shape, a.ndim - 1)
    last = a.ndim - 1
    values, order = lax.sort((a, index), dimension=last, num_keys=1, is_stable=True)
    if method == "ordinal":
        ranks = (index + 1).astype(dtype)
    else:
        different = values[..., 1:] != values[..., :-1]
        edge = jnp.ones((*a.shape[:-1], 1 if a.shape[-1] else 0), bool)
        begins = jnp.concatenate([edge, different], axis=-1)
        ends = jnp.concatenate([different, edge], axis=-1)
        low = lax.cummax(jnp.where(begins, index, 0), axis=last)
        high = lax.cummin(jnp.where(ends, index, np.iinfo(index.dtype).max), axis=last, reverse=True)
        ranks = {
            "min": lambda: (low + 1).astype(dtype),
            "max": lambda: (high + 1).astype(dtype),
            "average": lambda: (low + high).astype(dtype) / 2 + 1,
            "dense": lambda: lax.cumsum(begins.astype(index.dtype), axis=last).astype(dtype),
        }[method]()
    # Back to the order of the elements: sort by their positions.
    _, ranks = lax.sort((order, ranks), dimension=last, num_keys=1)
    if dtypes.is_inexact(a.dtype):
        ranks = jnp.where(jnp.any(jnp.isnan(a), axis=-1, keepdims=True), jnp.nan, ranks)
    return jnp.moveaxis(ranks, -1, axis)


def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """The standard error of the mean, ``std(a) / sqrt(n)``.

    Args:
      a: array.
      axis: the axis; None: all.
      ddof: the number subtracted from n in the divisor of the variance.
      nan_policy: "propagate", or "omit": leave NaN out, and out of n.
      keepdims: keep reduced axes with length 1.

    Examples:

      >>> jax.scipy.stats.sem(jnp.array([1., 2., 3., 4.])).round(3)
      Array(0.64500004, dtype=float32)
    """
    _check_policy("sem", nan_policy, ("propagate", "omit"))
    (a,) = inexact("sem", a)
    if nan_policy == "omit":
        count = jnp.sum(~jnp.isnan(a), axis=axis, keepdims=keepdims)
        return jnp.nanstd(a, axis=axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(
            count.astype(dtypes.default_float_dtype())
        ).astype(a.dtype)
    size = dims.size(a.shape) if axis is None else a.shape[axis_index(axis, a.ndim)]
    count = np.sqrt(size) if dims.is_constant_dim(size) else jnp.sqrt(dims.dim_as_value(size).astype(a.dtype))
    return jnp.std(a, axis=axis, ddof=ddof, keepdims=keepdims) / jnp.asarray(count, a.dtype)
