"""Statistics: averages, covariance, quantiles, counts and histograms."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import bedrax.numpy as jnp
import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes, positions
from bedrax.core.array import Array
from bedrax.core.defining import named
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.lax.choices import one_of
from bedrax.numpy.arguments import aligned, array, axes_tuple, concrete_int, inexact, promoted, refuse_out
from bedrax.numpy.sorting import search

__all__ = [
    "average",
    "bincount",
    "corrcoef",
    "cov",
    "digitize",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "percentile",
    "quantile",
]


@one_program(static=("axis", "returned", "keepdims"), arrays=("weights",))
def average(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, ...]:
    """Return the average, in which elements may have weights: ``sum(a * weights) / sum(weights)``.

    Args:
      a: array.
      axis: the axis or axes to average over; None denotes all.
      weights: of the shape of `a`, or with one axis for each averaged one (in the order of `axis`).
      returned: also return the sum of the weights.
      keepdims: keep averaged axes with length 1.

    Returns:
      The average, of a float or complex dtype, without the averaged axes. With `returned`, a pair: the average, and the sum
      of the weights (without weights, the number of elements), of the same shape.

    Raises:
      ValueError: the shape of the weights does not fit.

    Examples:

      >>> x = jnp.array([1., 2., 6.])
      >>> jnp.average(x)
      Array(3., dtype=float32)
      >>> jnp.average(x, weights=jnp.array([3, 1, 0]))
      Array(1.25, dtype=float32)
    """
    if weights is None:
        (a,) = inexact("average", a)
        out = jnp.mean(a, axis=axis, keepdims=keepdims)
        total = jnp.asarray(dims.dim_as_value(a.size) if not isinstance(a.size, int) else a.size, out.dtype)
        count = lax.div(total, jnp.asarray(max(out.size, 1), out.dtype)) if isinstance(out.size, int) else total
        return (out, jnp.broadcast_to(count, out.shape)) if returned else out
    a, weights = inexact("average", a, weights)
    axes = axes_tuple(axis, a.ndim)
    if weights.shape != a.shape:
        if axis is None:
            raise ValueError(
                f"axis must be specified when shapes of a and weights differ. got shapes {a.shape} and {weights.shape}"
            )
        wanted = tuple(a.shape[d] for d in axes)
        if weights.shape != wanted:
            raise ValueError(f"average: weights have the shape {wanted} of the averaged axes of a, got {weights.shape}")
        order = sorted(range(len(axes)), key=axes.__getitem__)
        weights = lax.broadcast_in_dim(jnp.transpose(weights, order), a.shape, sorted(axes))
    total = jnp.sum(weights, axis=axes, keepdims=keepdims)
    out = jnp.sum(a * weights, axis=axes, keepdims=keepdims) / total
    return (out, total) if returned else out


@one_program(static=("rowvar", "bias", "ddof", "dtype"), arrays=("y", "fweights", "aweights"))
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Covariance matrix.

    Args:
      m: array of rank 1 or 2: variables by observations.
      y: more variables, in the form of `m`.
      rowvar: rows are variables; otherwise columns.
      bias: divide by the number of observations N instead of N - 1.
      ddof: divide by N - ddof; overrides `bias`.
      fweights: the number of times that each observation counts, integers.
      aweights: relative weights of the observations.
      dtype: of the result.

    Raises:
      ValueError: ranks above 2, a `ddof` that is not an integer, or weights that do not fit.
      TypeError: `fweights` are not integers.

    Examples:

      >>> x = jnp.array([[1., 2., 3.], [6., 4., 2.]])
      >>> jnp.cov(x)
      Array([[ 1., -2.],
             [-2.,  4.]], dtype=float32)
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"cov: ddof must be an integer, got {ddof!r}")
    values = inexact("cov", *([m] if y is None else [m, y]))
    if dtype is not None:
        values = [v.astype(dtype) for v in values]
    for v in values:
        if v.ndim > 2:
            raise ValueError(f"cov: m and y have more than 2 dimensions, got shape {v.shape}")
    x = jnp.atleast_2d(values[0])
    x = x.T if not rowvar and values[0].ndim == 2 else x
    if y is not None:
        more = jnp.atleast_2d(values[1])
        x = jnp.concatenate([x, more.T if not rowvar and more.shape[0] != 1 else more], axis=0)
    ddof = (0 if bias else 1) if ddof is None else int(ddof)
    weights = None
    if fweights is not None:
        fweights = array("cov", fweights, 5)
        if not dtypes.is_integer(fweights.dtype):
            raise TypeError(f"fweights must be integer. cov got dtype {fweights.dtype}")
        weights = _observation_weights("fweights", fweights, x)
    if aweights is not None:
        aweights = _observation_weights("aweights", array("cov", aweights, 6), x)
        weights = aweights if weights is None else weights.astype(aweights.dtype) * aweights
    if weights is None:
        total = x.shape[1]
        mean = jnp.mean(x, axis=1, keepdims=True)
        factor = total - ddof
    else:
        real = dtypes.to_real_dtype(x.dtype)
        weights = weights.astype(real)
        total = jnp.sum(weights)
        mean = jnp.sum(x * aligned(weights, x), axis=1, keepdims=True) / total
        if aweights is None or ddof == 0:
            factor = total - ddof
        else:
            factor = total - ddof * jnp.sum(weights * aweights.astype(real)) / total
    centered = x - mean
    right = centered if weights is None else centered * aligned(weights, x)
    out = jnp.matmul(centered, jnp.conj(right).T)
    if dims.is_symbolic(factor):
        factor = dims.dim_as_value(factor).astype(dtypes.to_real_dtype(x.dtype))
    elif isinstance(factor, int):
        factor = np.asarray(max(factor, 0), dtypes.to_real_dtype(x.dtype))  # as in NumPy, the divisor is 0 or more
    else:
        factor = jnp.maximum(factor, 0)
    # An axis of unknown size stays: the number of variables is unknown, and not one.
    return jnp.squeeze(out / factor, tuple(i for i, d in enumerate(out.shape) if dims.is_constant_dim(d) and d == 1))


def _observation_weights(name: str, weights: Array, x: Array) -> Array:
    if weights.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if weights.shape[0] != x.shape[1]:
        raise RuntimeError(f"incompatible numbers of samples and {name}: {x.shape[1]} and {weights.shape[0]}")
    return abs(weights)


@one_program(static=("rowvar", "dtype"), arrays=("y",))
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None) -> Array:
    """Pearson's correlation coefficients of variables.

    Args:
      x: array of rank 1 or 2: variables by observations.
      y: more variables, in the form of `x`.
      rowvar: rows are variables; otherwise columns.
      dtype: of the result.

    Returns:
      A matrix with a row and a column for each variable; of one variable, an array of shape ().

    Raises:
      ValueError: ranks above 2.

    Examples:

      >>> x = jnp.array([[1., 2., 3.], [3., 2., 1.]])
      >>> jnp.corrcoef(x).round(3)
      Array([[ 1., -1.],
             [-1.,  1.]], dtype=float32)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    deviation = jnp.sqrt(jnp.real(jnp.diagonal(c)))
    c = c / deviation[:, None] / deviation[None, :]
    if dtypes.is_complex(c.dtype):
        return lax.complex(jnp.clip(jnp.real(c), -1, 1), jnp.clip(jnp.imag(c), -1, 1))
    return jnp.clip(c, -1, 1)


# Quantiles

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def _quantile(name, a, q, axis, method, keepdims, weights, ignore_nan):
    (a,), (q,) = inexact(name, a), inexact(name, q)
    if dtypes.is_complex(a.dtype):
        raise ValueError(f"jnp.{name} is for real numbers, as complex ones have no order; got {a.dtype}")
    one_of(name, "method", method, _METHODS)
    if q.ndim > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {q.shape}")
    axes = axes_tuple(axis, a.ndim)
    shape = a.shape
    if weights is not None:
        if method != "inverted_cdf":
            raise NotImplementedError(f"jnp.{name}: weights go with method='inverted_cdf' only, got {method!r}")
        weights = _quantile_weights(array(name, weights, 7), a, axis, axes)
    # [..., n]: the axes to reduce, last and flattened
    rest = [d for d in range(a.ndim) if d not in axes]
    flatten = lambda v: jnp.reshape(
        jnp.transpose(v, (*rest, *axes)), (*[shape[d] for d in rest], dims.size([shape[d] for d in axes]))
    )
    a = flatten(a)
    # positions in the sorted array need more digits than narrow floats have
    flat_q = jnp.reshape(q, (-1,)).astype(a.dtype if dtypes.finfo(a.dtype).bits >= 32 else np.float32)
    isnan = jnp.isnan(a)
    if a.shape[-1] == 0:
        out = jnp.full((*a.shape[:-1], *flat_q.shape), np.nan, a.dtype)
        if name in ("quantile", "percentile") and out.size:
            raise IndexError(
                f"jnp.{name}: axis {axis} of an array of shape {shape} has no elements, and so no quantiles;"
                f" jnp.nan{name} returns NaN"
            )
    elif weights is not None:
        out = _weighted_quantile(a, flat_q, flatten(weights), isnan, ignore_nan)
    else:
        out = _sorted_quantile(a, flat_q, isnan, method, ignore_nan)
    if not ignore_nan:
        out = jnp.where(jnp.any(isnan, axis=-1, keepdims=True), np.asarray(np.nan, a.dtype), out)
    # the axis of q comes first
    out = jnp.reshape(jnp.moveaxis(out, -1, 0), (*q.shape, *a.shape[:-1]))
    return jnp.expand_dims(out, [q.ndim + d for d in axes]) if keepdims else out


def _quantile_weights(weights, a, axis, axes):
    if weights.shape == a.shape:
        return weights
    if len(axes) != 1 or axis is None or weights.shape != (a.shape[axes[0]],):
        raise ValueError(
            f"weights must have the shape of a, or the length of a along the one given axis, got {weights.shape} for"
            f" an array of shape {a.shape} and axis {axis}"
        )
    return lax.broadcast_in_dim(weights, a.shape, axes)


def _sorted_quantile(a, q, isnan, method, ignore_nan):
    """Quantiles of `a` along its last axis. The last axis of the result runs over `q`."""
    ordered = lax.sort(a, a.ndim - 1)
    wide = q.dtype
    n = a.shape[-1]
    if ignore_nan:
        count = jnp.sum(~isnan, axis=-1, keepdims=True).astype(wide)
        q = aligned(q, count)
    else:
        count = jnp.asarray(n if isinstance(n, int) else dims.dim_as_value(n), wide)
    top = jnp.maximum(count - 1, 0)
    if method == "inverted_cdf":
        place = low = high = jnp.clip(jnp.ceil(q * count) - 1, 0, top)
    else:
        place = q * top
        low, high = jnp.clip(jnp.floor(place), 0, top), jnp.clip(jnp.ceil(place), 0, top)
    if method == "nearest":
        low = high = jnp.clip(jnp.round(place), 0, top)  # halves are rounded to the even position

    def pick(at):
        at = at.astype(dtypes.default_int_dtype())
        if at.ndim == 1:
            return jnp.take(ordered, at, axis=-1, mode="clip")
        at = jnp.broadcast_to(at, (*a.shape[:-1], q.shape[-1]))
        return jnp.take_along_axis(ordered, at, axis=-1, mode="clip")

    if method in ("lower", "nearest", "inverted_cdf"):
        return pick(low)
    if method == "higher":
        return pick(high)
    below, above = pick(low).astype(wide), pick(high).astype(wide)
    if method == "midpoint":
        return ((below + above) * np.asarray(0.5, wide)).astype(a.dtype)
    weight = aligned(place - low, below)
    # two products rather than a difference: equal infinite neighbours stay infinite
    mixed = below * (1 - weight) + above * weight
    return jnp.where((weight <= 0) | (below == above), below, mixed).astype(a.dtype)


def _weighted_quantile(a, q, weights, isnan, ignore_nan):
    """The least element at which the share of the weights so far reaches q."""
    weights = weights.astype(q.dtype)
    if ignore_nan:
        weights = jnp.where(isnan, 0, weights)
    ordered, weights = lax.sort((a, weights), a.ndim - 1, num_keys=1)
    share = jnp.cumsum(weights, axis=-1)
    total = share[..., -1:]
    reached = share[..., None] >= (aligned(q, total) * total)[..., None, :]  # [..., n, q]
    # elements without weight are not candidates
    reached = reached & (weights > 0)[..., None]
    at = jnp.argmax(reached, axis=-2)
    return jnp.take_along_axis(ordered, at, axis=-1)


def _shares(name: str, text: str, ignore_nan: bool, parts: int = 1, *, example: str) -> Callable[..., Array]:
    def function(
        a: ArrayLike,
        q: ArrayLike,
        axis: int | tuple[int, ...] | None = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: ArrayLike | None = None,
    ) -> Array:
        _no_out(name, out, overwrite_input)
        share = q if parts == 1 else inexact(name, array(name, q, 1))[0] / parts
        return _quantile(name, a, share, axis, method, keepdims, weights, ignore_nan)

    static = ("axis", "out", "overwrite_input", "method", "keepdims")
    return one_program(named(function, name, __name__, text, example), static=static, arrays=("weights",))


quantile: Final = _shares(
    "quantile",
    """The values below which a share `q` of the elements lies.

    Args:
      a: array of real numbers.
      q: shares in [0, 1], a scalar or an array of rank 1.
      axis: the axis or axes to reduce; None is all.
      out, overwrite_input: not supported.
      method: what to return between two elements: ``"linear"`` interpolates; ``"lower"``, ``"higher"``,
        ``"nearest"`` take one of them; ``"midpoint"`` their mean; ``"inverted_cdf"`` inverts the empirical
        distribution.
      keepdims: keep reduced axes with length 1.
      weights: of the shape of `a` or of the axis; only for ``"inverted_cdf"``.

    Returns:
      An array with the axis of `q` first, if it has one. NaN where an element is NaN.

    Raises:
      ValueError: unknown method, complex input, a `q` of rank 2 or more.
      IndexError: there are no elements along the axis. `nanquantile`, `median` and `nanmedian` return NaN there.
      NotImplementedError: weights with another method; `out`.
    """,
    False,
    example="""
    >>> x = jnp.array([[0., 10.], [20., 40.]])
    >>> jnp.quantile(x, 0.5)
    Array(15., dtype=float32)
    >>> jnp.quantile(x, jnp.array([0.25, 0.75]), axis=1)
    Array([[ 2.5, 25. ],
           [ 7.5, 35. ]], dtype=float32)
    """,
)
nanquantile: Final = _shares(
    "nanquantile",
    "`quantile` of the elements that are not NaN; NaN where there is none. Arguments as in `quantile`.",
    True,
    example="""
    >>> jnp.nanquantile(jnp.array([0., jnp.nan, 10.]), jnp.array([0.25, 0.5]))
    Array([2.5, 5. ], dtype=float32)
    """,
)
nanpercentile: Final = _shares(
    "nanpercentile",
    "`percentile` of the elements that are not NaN; NaN where there is none. Arguments as in `percentile`.",
    True,
    100,
    example="""
    >>> jnp.nanpercentile(jnp.array([0., jnp.nan, 10.]), 25)
    Array(2.5, dtype=float32)
    """,
)


@one_program(static=("axis", "out", "overwrite_input", "method", "keepdims", "out_sharding"), arrays=("weights",))
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Return percentiles: numbers that `q` percent of the elements do not exceed.

    Args:
      a: array of real numbers.
      q: percents from 0 to 100: a number, or an array of them.
      axis: the axis or axes; None denotes all.
      out: must be None.
      overwrite_input: must be False.
      method: how to choose between two neighbouring elements; see `quantile`.
      keepdims: keep these axes, with length 1.
      weights: the weight of each element; of the shape of `a`, or one per position along `axis`.
      out_sharding: optional placement of the result.

    Returns:
      A float array: the axes of `q`, then the other axes of `a`.

    Examples:

      >>> jnp.percentile(jnp.array([0., 10., 20.]), 75)
      Array(15., dtype=float32)
    """
    _no_out("percentile", out, overwrite_input)
    found = _quantile(
        "percentile",
        a,
        inexact("percentile", array("percentile", q, 1))[0] / 100,
        axis,
        method,
        keepdims,
        weights,
        False,
    )
    return lax.placed(found, out_sharding)


def _middle(name: str, text: str, ignore_nan: bool, example: str) -> Callable[..., Array]:
    def function(
        a: ArrayLike,
        axis: int | tuple[int, ...] | None = None,
        out: None = None,
        overwrite_input: bool = False,
        keepdims: bool = False,
    ) -> Array:
        _no_out(name, out, overwrite_input)
        return _quantile(name, a, 0.5, axis, "midpoint", keepdims, None, ignore_nan)

    named(function, name, __name__, text, example)
    return one_program(function, static=("axis", "out", "overwrite_input", "keepdims"))


median: Final = _middle(
    "median",
    """The middle element, or the mean of the two there; NaN where an element is NaN.

    Args:
      a: array of real numbers.
      axis: the axis or axes; None denotes all.
      out: must be None.
      overwrite_input: must be False.
      keepdims: keep these axes, with length 1.

    Returns:
      A float array without these axes.

    Raises:
      ValueError: `a` is complex.
    """,
    False,
    example="""
    >>> jnp.median(jnp.array([[3., 1., 2.], [5., 7., 100.]]), axis=1)
    Array([2., 7.], dtype=float32)
    """,
)
nanmedian: Final = _middle(
    "nanmedian",
    """The median of the elements that are not NaN; NaN where there is none.

    Args:
      a: array of real numbers.
      axis: the axis or axes; None denotes all.
      out: must be None.
      overwrite_input: must be False.
      keepdims: keep these axes, with length 1.

    Returns:
      A float array without these axes.

    Raises:
      ValueError: `a` is complex.
    """,
    True,
    example="""
    >>> jnp.nanmedian(jnp.array([1., jnp.nan, 3., 8.]))
    Array(3., dtype=float32)
    """,
)


def _no_out(name: str, out: Any, overwrite_input: bool) -> None:
    refuse_out(name, out)
    if overwrite_input:
        raise ValueError(f"jnp.{name} does not support overwrite_input=True: arrays are immutable.")


# Counts and histograms


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """The number of occurrences of each integer 0, 1, 2...

    Args:
      x: integers, of rank 1. Negative ones count as 0.
      weights: the weight of each element, instead of 1.
      minlength: least length of the result, if `length` is None.
      length: length of the result; greater integers do not count. None needs a concrete `x`.
      out_sharding: the sharding of the result, or None.

    Raises:
      TypeError: `x` is not of integers.
      ValueError: `x` is not of rank 1, or the weights are of another shape.
      ConcretizationTypeError: `x` is traced and there is no `length`.

    Examples:

      >>> jnp.bincount(jnp.array([0, 2, 2, 5]))
      Array([1, 0, 2, 0, 0, 1], dtype=int32)
      >>> jnp.bincount(jnp.array([0, 2, 2]), weights=jnp.array([0.5, 1., 1.]), length=4)
      Array([0.5, 0. , 2. , 0. ], dtype=float32)
    """
    x = array("bincount", x)
    if not (dtypes.is_integer(x.dtype) or dtypes.is_bool(x.dtype)):
        raise TypeError(f"bincount counts integers, got {x.dtype}")
    if x.ndim != 1:
        raise ValueError(f"only 1-dimensional input supported, got shape {x.shape}")
    if weights is None:
        positions.result_dtype("bincount", x.shape[0])
    minlength = dims.integer(minlength, "minlength")
    if length is None:
        top = 0
        if x.size:
            top = concrete_int(
                jnp.max(x), "The largest element decides the length of the result of jnp.bincount; pass length."
            )
        length = max(minlength, top + 1 if x.size else 0)
    if minlength < 0 or length < 0:
        raise ValueError(f"jnp.bincount: minlength and length are not negative, got {minlength} and {length}")
    length = dims.integer(length, "length") if dims.is_constant_dim(length) else length
    if weights is None:
        weights = np.asarray(1, dtypes.default_int_dtype())
    else:
        weights = array("bincount", weights, 1)
        if dtypes.is_bool(weights.dtype):
            weights = lax.convert_to(weights, dtypes.default_int_dtype(), False)
        if weights.shape != x.shape:
            raise ValueError(f"shape of weights must match shape of x, got {weights.shape} and {x.shape}")
    at = jnp.maximum(x, 0) if not dtypes.is_bool(x.dtype) else x.astype(dtypes.default_int_dtype())
    return lax.placed(jnp.zeros((length,), weights.dtype).at[at].add(weights, mode="drop"), out_sharding)


@one_program(static=("right", "method"))
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The bin that each value belongs to.

    Args:
      x: values.
      bins: edges, of rank 1, ascending or descending.
      right: whether the right edge (instead of the left one) belongs to a bin.
      method: that of `searchsorted`.

    Returns:
      Integers from 0 (before the first edge) to ``len(bins)``.

    Examples:

      >>> jnp.digitize(jnp.array([0.5, 1., 7.]), bins=jnp.array([0., 1., 5.]))
      Array([1, 2, 3], dtype=int32)
    """
    x, bins = promoted("digitize", x, bins)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got bins.shape={bins.shape}")
    if dims.definitely_equal(bins.shape[0], 0):
        return jnp.zeros(x.shape, np.int32)
    side = "left" if right else "right"
    find = search if method is None else functools.partial(_search_by, method)
    up, down = find(bins, x, side), bins.shape[0] - find(lax.rev(bins, (0,)), x, side)
    return jnp.where(bins[-1] >= bins[0], up, down)


def _search_by(method, a, v, side):
    return jnp.searchsorted(a, v, side, method=method)


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: None | ArrayLike | Sequence[ArrayLike] = None,
    weights: ArrayLike | None = None,
) -> Array:
    """The edges of the bins that `histogram` uses.

    Args:
      a: array, flattened.
      bins: number of bins of equal width, or their edges.
      range: ends of the first and last bin; by default the extremes of `a`.
      weights: has no effect.

    Returns:
      An array of floats of rank 1, with one element more than there are bins.

    Raises:
      NotImplementedError: `bins` is the name of a rule.
      ValueError: there is no bin.

    Examples:

      >>> jnp.histogram_bin_edges(jnp.array([0., 4.]), bins=4)
      Array([0., 1., 2., 3., 4.], dtype=float32)
    """
    del weights  # as in NumPy, they matter only to rules that are not supported
    if isinstance(bins, str):
        raise NotImplementedError(f"bins={bins!r}: rules that choose bins are not supported; pass a number or edges")
    (a,) = inexact("histogram_bin_edges", a)
    dtype = dtypes.to_real_dtype(a.dtype)
    if np.ndim(bins) == 1:
        return jnp.asarray(bins, dtype)
    bins = dims.integer(bins, "bins")
    if bins < 1:
        raise ValueError(f"there is at least one bin, got bins={bins}")
    if bins > np.iinfo(np.intp).max // 8:  # their edges would be positions that no integer counts
        raise ValueError(f"bins={bins} are more than memory can address")
    if range is None:
        if not a.size:
            low, high = jnp.asarray(0, dtype), jnp.asarray(1, dtype)
        else:
            low, high = jnp.min(a), jnp.max(a)
    else:
        low, high = (jnp.asarray(v, dtype) for v in range)
    same = low == high
    return jnp.linspace(jnp.where(same, low - 0.5, low), jnp.where(same, high + 0.5, high), bins + 1, dtype=dtype)


def _bins_of(a: Array, edges: Array) -> Array:
    """1 + the bin of each value; 0 and ``len(edges)`` are outside. The last bin includes its right edge."""
    at = search(edges, a, "right")
    return jnp.where(a == edges[-1], edges.shape[0] - 1, at)


@one_program(static=("bins", "range", "density", "out_sharding"), arrays=("weights",))
def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
    out_sharding: Any = None,
) -> tuple[Array, Array]:
    """The number of elements in each bin.

    Args:
      a: array, flattened.
      bins: number of bins of equal width, or their edges, ascending. Bins include their left edge, the last one
        both.
      range: ends of the first and last bin; by default the extremes of `a`.
      weights: the weight of each element, instead of 1.
      density: divide by the total and by the widths of the bins.
      out_sharding: optional placement of the counts.

    Returns:
      The counts, as floats, and the edges.

    Examples:

      >>> counts, edges = jnp.histogram(jnp.array([1., 2., 2., 4.]), bins=3)
      >>> counts
      Array([1., 2., 1.], dtype=float32)
      >>> edges
      Array([1., 2., 3., 4.], dtype=float32)
    """
    if weights is None:
        (a,) = inexact("histogram", a)
    else:
        a, weights = inexact("histogram", a, weights)
        if a.shape != weights.shape:
            raise ValueError(f"weights should have the same shape as a. got shapes {weights.shape} and {a.shape}")
    edges = histogram_bin_edges(a, bins, range)
    operands = (a, edges) if weights is None else (a, edges, weights)
    return lax.placed_result(out_sharding, _counts, *operands, density=density), edges


def _counts(a, edges, weights=None, *, density):
    at = jnp.ravel(_bins_of(a, edges))
    if weights is None:  # integers: a float32 counts to 2^24
        with positions.scope(a.size):
            counts = jnp.zeros(edges.shape, positions.dtype_for(a.size)).at[at].add(1, mode="drop")[1:]
        counts = lax.convert_element_type(counts, a.dtype)
    else:
        counts = jnp.zeros(edges.shape, weights.dtype).at[at].add(jnp.ravel(weights), mode="drop")[1:]
    return counts / jnp.diff(edges) / jnp.sum(counts) if density else counts


@one_program(static=("bins", "range", "density"), arrays=("weights",))
def histogramdd(
    sample: ArrayLike,
    bins: Any = 10,
    range: Sequence[None | Sequence[ArrayLike]] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """The number of points in each cell of a grid.

    Args:
      sample: points, of shape ``[N, D]`` (or a sequence of D arrays of coordinates).
      bins: number of bins or edges, one for all dimensions or a sequence of D of them.
      range: D pairs of ends; None for the extremes.
      weights: the weight of each point, instead of 1.
      density: divide by the total and by the volumes of the cells.

    Returns:
      The counts, of rank D, and the edges of each dimension.

    Examples:

      >>> points = jnp.array([[0., 0.], [0., 1.], [1., 1.]])
      >>> counts, edges = jnp.histogramdd(points, bins=2)
      >>> counts
      Array([[1, 1],
             [0, 1]], dtype=int32)
    """
    if isinstance(sample, (tuple, list)):
        sample = jnp.stack(promoted("histogramdd", *sample), axis=-1)
    (points,) = inexact("histogramdd", sample)
    if points.ndim != 2:
        raise ValueError(f"sample must have shape [N, D], got {points.shape}")
    n, d = points.shape
    if range is not None and len(range) != d:
        raise ValueError(f"For sample.shape={points.shape}, range must have length {d}; got {len(range)}.")
    per_dimension = isinstance(bins, (tuple, list)) or getattr(bins, "ndim", 0) >= 1
    if per_dimension and len(bins) != d:
        raise ValueError(f"should be a bin for each dimension: got {len(bins)} for {d} dimensions")
    edges, places = [], []
    for i in _range(d):
        e = histogram_bin_edges(points[:, i], bins[i] if per_dimension else bins, None if range is None else range[i])
        edges.append(e)
        places.append(_bins_of(points[:, i], e))
    # cells of a grid with a margin for points outside
    shape = tuple(e.shape[0] + 1 for e in edges)
    at = jnp.zeros((n,), np.int32)
    for place, size in zip(places, shape, strict=True):
        at = at * size + place.astype(np.int32)
    if weights is not None:
        weights = array("histogramdd", weights)
        if weights.shape != (n,):
            raise ValueError(
                f"histogramdd: weights should have one weight for each sample. got shape {weights.shape} for {n} samples"
            )
    counts = bincount(at, weights, length=int(np.prod(shape))).reshape(shape)
    counts = counts[(slice(1, -1),) * d]
    if density:
        counts = counts.astype(points.dtype)
        counts = counts / jnp.sum(counts)
        for i, e in enumerate(edges):
            counts = counts / jnp.expand_dims(jnp.diff(e), [k for k in _range(d) if k != i])
    return counts, edges


_range = range


@one_program(static=("bins", "range", "density"), arrays=("weights",))
def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Sequence[None | Sequence[ArrayLike]] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """The number of points (x, y) in each cell of a grid; see `histogramdd`.

    Args:
      x, y: coordinates, of rank 1.
      bins: number of bins or edges for both, or a pair of them.
      range, weights, density: as in `histogramdd`.

    Returns:
      The counts, the edges in x and the edges in y.

    Examples:

      >>> x, y = jnp.array([0., 0., 1.]), jnp.array([0., 1., 1.])
      >>> counts, x_edges, y_edges = jnp.histogram2d(x, y, bins=2)
      >>> counts
      Array([[1, 1],
             [0, 1]], dtype=int32)
    """
    x, y = promoted("histogram2d", x, y)
    sequence = isinstance(bins, (tuple, list)) or getattr(bins, "ndim", 0) == 1
    if sequence and len(bins) != 2:  # edges for both
        bins = [jnp.asarray(bins)] * 2
    counts, edges = histogramdd(jnp.stack([x, y], axis=-1), bins, range, weights, density)
    return counts, edges[0], edges[1]
