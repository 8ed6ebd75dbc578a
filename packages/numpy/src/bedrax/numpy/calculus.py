"""Functions given by samples: differences, derivative, integral, interpolation, convolution."""

from __future__ import annotations

from typing import Any

import bedrax.numpy as jnp
import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, Axis
from bedrax.numpy.arguments import array, axes_tuple, axis_index, inexact, promoted
from bedrax.numpy.sorting import search

__all__ = ["convolve", "correlate", "diff", "ediff1d", "gradient", "interp", "trapezoid", "unwrap"]


@one_program(static=("n", "axis"), arrays=("prepend", "append"))
def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Array:
    """Differences of neighbours, computed `n` times. For booleans: whether neighbours differ.

    Args:
      a: array of rank 1 or more.
      n: the number of repetitions; 0 returns `a`.
      axis: the axis.
      prepend, append: values to join to `a` before and after it: scalars, or arrays of its shape elsewhere.

    Raises:
      ValueError: `a` is a scalar, or `n` is negative.

    Examples:

      >>> x = jnp.array([1, 4, 9, 16])
      >>> jnp.diff(x)
      Array([3, 5, 7], dtype=int32)
      >>> jnp.diff(x, n=2)
      Array([2, 2], dtype=int32)
    """
    a = array("diff", a)
    if not a.ndim:
        raise ValueError("diff requires input that is at least one dimensional; got a scalar")
    n = dims.integer(n, "n")
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if not n:
        return a
    axis = axis_index(axis, a.ndim)
    edge = tuple(1 if d == axis else s for d, s in enumerate(a.shape))
    parts = [jnp.broadcast_to(v, edge) if not np.ndim(v) else v for v in (prepend, append) if v is not None]
    if parts:
        before = parts[:1] if prepend is not None else []
        behind = parts[-1:] if append is not None else []
        a = jnp.concatenate([*before, a, *behind], axis=axis)
    for _ in range(n):
        size = a.shape[axis]
        if dims.is_constant_dim(size) and size <= 1:
            return lax.slice_in_dim(a, 0, 0, axis=axis)
        high, low = lax.slice_in_dim(a, 1, size, axis=axis), lax.slice_in_dim(a, 0, size - 1, axis=axis)
        a = lax.ne(high, low) if dtypes.is_bool(a.dtype) else lax.sub(high, low)
    return a


def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """Differences of neighbours in the flattened array, between `to_begin` and `to_end`.

    Args:
      ary: array of numbers, flattened.
      to_end, to_begin: values after and before the differences: arrays, flattened and converted to the dtype of `ary`.
        Default: none.

    Returns:
      An array of rank 1, of the dtype of `ary`.

    Examples:

      >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_end=-1)
      Array([ 3,  5, -1], dtype=int32)
    """
    a = jnp.ravel(array("ediff1d", ary))
    out = [lax.sub(a[1:], a[:-1])]
    if to_begin is not None:
        out.insert(0, jnp.ravel(array("ediff1d", to_begin, 2)).astype(a.dtype))
    if to_end is not None:
        out.append(jnp.ravel(array("ediff1d", to_end, 1)).astype(a.dtype))
    return jnp.concatenate(out)


@one_program(static=("axis", "edge_order"))
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: Axis = None, edge_order: int | None = None) -> Any:
    """Derivatives by central differences inside and one-sided ones at the ends.

    Args:
      f: samples.
      varargs: spacing: none (1), one for all axes, or one per axis; each a number, or the coordinates of the
        samples along the axis.
      axis: the axis or axes; None denotes all.
      edge_order: not supported.

    Returns:
      An array, or a list of one per axis.

    Raises:
      ValueError: an axis is shorter than 2, or spacings do not fit.
      TypeError: their number does not fit the number of axes.

    Examples:

      >>> x = jnp.array([1., 2., 4., 7.])
      >>> jnp.gradient(x)
      Array([1. , 1.5, 2.5, 3. ], dtype=float32)
      >>> jnp.gradient(x, 0.5)
      Array([2., 3., 5., 6.], dtype=float32)
    """
    if edge_order is not None:
        raise NotImplementedError(f"jnp.gradient: edge_order={edge_order} is not supported; leave it out")
    f, *steps = inexact("gradient", f, *varargs)
    single = axis is not None and not isinstance(axis, (tuple, list))
    axes = axes_tuple(axis, f.ndim)
    if not axes:
        return []
    if not steps:
        steps = [jnp.ones((), f.dtype)]
    if len(steps) == 1 and len(axes) > 1:
        if steps[0].ndim:
            raise TypeError(f"gradient needs coordinates for each of {len(axes)} axes, got one array")
        steps = steps * len(axes)
    if len(steps) != len(axes):
        raise TypeError(f"Invalid number of spacing arguments: {len(steps)} for {len(axes)} axes")
    for d in axes:
        if dims.is_constant_dim(f.shape[d]) and f.shape[d] < 2:
            raise ValueError(f"jnp.gradient: axis {d} of shape {f.shape} has less than 2 elements")
    out = [_slope(f, d, h) for d, h in zip(axes, steps, strict=True)]
    return out[0] if single or len(out) == 1 else out


def _slope(f: Array, axis: int, h: Array) -> Array:
    n = f.shape[axis]
    part = lambda start, stop: lax.slice_in_dim(f, start, stop, axis=axis)
    if not h.ndim:
        first, last = (part(1, 2) - part(0, 1)) / h, (part(n - 1, n) - part(n - 2, n - 1)) / h
        inner = (part(2, n) - part(0, n - 2)) / (h * 2)
    else:
        if h.ndim != 1 or not dims.definitely_equal(h.shape[0], n):
            raise ValueError(f"Spacing arrays must have the length of their axis, {n}, got shape {h.shape}")
        steps = (h[1:] - h[:-1]).reshape((-1,) + (1,) * (f.ndim - 1 - axis))
        step = lambda start, stop: lax.slice_in_dim(steps, start, stop)
        first = (part(1, 2) - part(0, 1)) / step(0, 1)
        last = (part(n - 1, n) - part(n - 2, n - 1)) / step(n - 2, n - 1)
        before, behind = step(0, n - 2), step(1, n - 1)
        # the parabola through three points (second order for unequal steps)
        inner = (before**2 * part(2, n) + (behind**2 - before**2) * part(1, n - 1) - behind**2 * part(0, n - 2)) / (
            before * behind * (before + behind)
        )
    return jnp.concatenate([first, inner, last], axis=axis)


@one_program(static=("axis",), arrays=("x",))
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule.

    Args:
      y: samples.
      x: the positions of the samples: of rank 1, or of the shape of `y`. Default: `dx` apart.
      dx: spacing, if there is no `x`.
      axis: the axis.

    Examples:

      >>> jnp.trapezoid(jnp.array([0., 1., 4.]), dx=0.5)
      Array(1.5, dtype=float32)
    """
    if x is None:
        y, dx = inexact("trapezoid", *inexact("trapezoid", y), dx)  # the float of y alone: the default dx is weak
        y = jnp.moveaxis(y, axis, -1)
    else:
        y, x = inexact("trapezoid", y, x)
        y = jnp.moveaxis(y, axis, -1)
        dx = diff(x if x.ndim == 1 else jnp.moveaxis(x, axis, -1))
    return jnp.sum(dx * (y[..., 1:] + y[..., :-1]), axis=-1) * np.asarray(0.5, dtypes.to_real_dtype(y.dtype))


@one_program(static=("axis", "period"), arrays=("discont",))
def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * np.pi) -> Array:
    """Add multiples of `period` so that neighbours along an axis differ by at most half of it.

    Args:
      p: array.
      discont: jumps below this (but at least half the period) are unchanged.
      axis: the axis.
      period: the period; with an integer period and array, results are integers.

    Examples:

      >>> jnp.unwrap(jnp.array([0., 3., 7., 4.]), period=4)
      Array([ 0., -1., -1.,  0.], dtype=float32)
    """
    p, period = promoted("unwrap", p, period)
    if dtypes.is_complex(p.dtype):
        raise ValueError(f"jnp.unwrap takes real angles, got {p.dtype}")
    axis = axis_index(axis, p.ndim)
    n = p.shape[axis]
    if dims.is_constant_dim(n) and n == 0:
        return p
    integer = dtypes.is_integer(p.dtype)
    half = period // 2 if integer else period / 2
    low = -half
    jumps = diff(p, axis=axis)
    rest = jnp.mod(jumps - low, period) + low
    # exactly half a period forward stays forward; an odd integer period has no such jump
    ambiguous = (rest == low) & (jumps > 0)
    if integer:
        ambiguous = ambiguous & (period % 2 == 0)
    rest = jnp.where(ambiguous, half, rest)
    limit = half
    if discont is not None:
        discont = jnp.ceil(discont) if integer else discont  # integers are below a number if they are below its ceiling
        limit = jnp.maximum(half, jnp.asarray(discont, p.dtype))
    fix = jnp.where(abs(jumps) < limit, 0, rest - jumps)
    first = lax.slice_in_dim(p, 0, 1, axis=axis)
    return jnp.concatenate([first, lax.slice_in_dim(p, 1, n, axis=axis) + jnp.cumsum(fix, axis=axis)], axis=axis)


@one_program(static=("period",), arrays=("left", "right"))
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Piecewise linear interpolation.

    Args:
      x: where to evaluate.
      xp: places of the samples, of rank 1, ascending.
      fp: the samples.
      left, right: values before the first and behind the last place; default the first and the last sample; or
        ``"extrapolate"``.
      period: the places repeat with this period, and need not be sorted; `left` and `right` have no effect.

    Raises:
      ValueError: `xp` and `fp` are not of rank 1 and equal length; a string other than ``"extrapolate"``; a period
        of 0.

    Examples:

      >>> jnp.interp(jnp.array([0.5, 2.5, 9.]), jnp.array([0., 1., 3.]), jnp.array([0., 10., 20.]))
      Array([ 5. , 17.5, 20. ], dtype=float32)
    """
    (fp,) = inexact("interp", fp)
    x, xp = inexact("interp", x, xp)
    if dtypes.is_complex(x.dtype):
        raise ValueError(f"jnp.interp: x is real, got {x.dtype}")
    if xp.shape != fp.shape or xp.ndim != 1:
        raise ValueError(f"xp and fp must be one-dimensional arrays of equal size, got {xp.shape} and {fp.shape}")
    for name, value in (("left", left), ("right", right)):
        if isinstance(value, str) and value != "extrapolate":
            raise ValueError(f"the only valid string value of {name} is 'extrapolate', got {value!r}")
    if period is not None:
        if not np.ndim(period) and isinstance(period, (int, float)) and period == 0:
            raise ValueError(f"period must be a non-zero value; got {period}")
        period = abs(jnp.asarray(period, x.dtype))
        x, xp = x % period, xp % period
        order = jnp.argsort(xp)
        xp, fp = jnp.take(xp, order), jnp.take(fp, order)
        xp = jnp.concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = jnp.concatenate([fp[-1:], fp, fp[:1]])
        left = right = None
    n = xp.shape[0]
    if dims.definitely_equal(n, 1):
        out = jnp.broadcast_to(fp[0], x.shape)
    else:
        last = n - 1 if dims.is_constant_dim(n) else dims.dim_as_value(n - 1)
        at = jnp.clip(search(xp, x, "right"), 1, last)
        take = lambda values, where: jnp.take(values, where, mode="clip")
        x0, x1, f0, f1 = take(xp, at - 1), take(xp, at), take(fp, at - 1), take(fp, at)
        step = x1 - x0
        flat = step == 0  # two samples at one position: the later one counts
        slope = (f1 - f0) / jnp.where(flat, 1, step)
        out = jnp.where(flat & (x == x), f1, f0 + (x - x0) * slope)  # NaN stays NaN
    if period is None:
        if not isinstance(left, str):
            out = jnp.where(x < xp[0], fp[0] if left is None else jnp.asarray(left, out.dtype), out)
        if not isinstance(right, str):
            out = jnp.where(x > xp[-1], fp[-1] if right is None else jnp.asarray(right, out.dtype), out)
    return out


# Convolution


@one_program(static=("mode", "precision", "preferred_element_type"))
def convolve(
    a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Discrete convolution of two vectors.

    Args:
      a, v: arrays of rank 1.
      mode: ``"full"``, every overlap; ``"valid"``, only complete ones; ``"same"``, the middle of ``"full"``, as
        long as the longer vector.
      precision: see `jax.lax.Precision`.
      preferred_element_type: dtype of the result.

    Raises:
      ValueError: other ranks, empty vectors, an unknown mode.

    Examples:

      >>> jnp.convolve(jnp.array([1., 2., 3.]), jnp.array([1., 1.]))
      Array([1., 3., 5., 3.], dtype=float32)
      >>> jnp.convolve(jnp.array([1., 2., 3.]), jnp.array([1., 1.]), mode="valid")
      Array([3., 5.], dtype=float32)
    """
    return _convolve("convolve", a, v, mode, precision, preferred_element_type)


@one_program(static=("mode", "precision", "preferred_element_type"))
def correlate(
    a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Cross-correlation of two vectors: sums of ``a[n + k] * conj(v[n])``.

    Args:
      a, v: arrays of rank 1.
      mode: as in `convolve`; default: only complete overlaps.
      precision, preferred_element_type: as in `convolve`.

    Raises:
      ValueError: other ranks, empty vectors, an unknown mode.

    Examples:

      >>> jnp.correlate(jnp.array([1., 2., 3.]), jnp.array([0., 1.]), mode="full")
      Array([1., 2., 3., 0.], dtype=float32)
    """
    return _convolve("correlate", a, v, mode, precision, preferred_element_type)


def _convolve(name, a, v, mode, precision, preferred):
    a, v = inexact(name, a, v)
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError(f"{name}() only support 1-dimensional inputs, got shapes {a.shape} and {v.shape}.")
    if dims.definitely_equal(a.shape[0], 0) or dims.definitely_equal(v.shape[0], 0):
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {a.shape} and {v.shape}.")
    correlating = name == "correlate"
    if correlating and dtypes.is_complex(v.dtype):
        v = jnp.conj(v)
    # the longer one is the image; the roles of a correlation change with a reversed result
    swapped = not dims.at_least(a.shape[0], v.shape[0])
    if swapped:
        a, v = v, a
    m = v.shape[0]
    if not correlating:
        v = lax.rev(v, (0,))
    if mode == "full":
        padding = (m - 1, m - 1)
    elif mode == "same":
        # Of n + m - 1 overlaps, the middle n. Where the two ends cannot be cut equally, the second loses one more for a
        # convolution; reversing a correlation moves it to the first.
        padding = (m // 2, m - m // 2 - 1)
        if not correlating:
            padding = (m - 1 - (m - 1) // 2, (m - 1) // 2)
    elif mode == "valid":
        padding = (0, 0)
    else:
        raise ValueError(f"{name}() unsupported mode={mode!r}, expected 'full', 'same' or 'valid'")
    out = lax.conv_general_dilated(
        a[None, None, :], v[None, None, :], (1,), [padding], precision=precision, preferred_element_type=preferred
    )[0, 0]
    return lax.rev(out, (0,)) if swapped and correlating else out
