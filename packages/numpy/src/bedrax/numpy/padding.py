"""`pad`: arrays with a border, in the modes of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.typing import ArrayLike
from bedrax.lax.choices import one_of
from bedrax.lax.operators import remainder
from bedrax.lax.promotion import operand
from bedrax.numpy import reductions
from bedrax.numpy.functional import apply_along_axis
from bedrax.numpy.manipulation import moveaxis
from bedrax.numpy.ranges import linspace
from bedrax.numpy.statistics import median
from bedrax.numpy.ufuncs import round as round_

Width = tuple[Any, Any]


def _pairs(value: Any, rank: int, name: str, cast: Callable) -> list[Width]:
    """A scalar, (before, after), ((before, after),) or one pair per axis, as one pair per axis."""
    if isinstance(value, (Array, np.ndarray)) and not isinstance(value, np.generic):
        value = list(value) if value.ndim else value
    if not isinstance(value, (list, tuple)):
        return [(cast(value), cast(value))] * rank
    rows = [
        list(v) if isinstance(v, (list, tuple)) or (isinstance(v, (Array, np.ndarray)) and v.ndim) else v for v in value
    ]
    if rows and not any(isinstance(r, list) for r in rows):
        if len(rows) == 1:
            return [(cast(rows[0]),) * 2] * rank
        if len(rows) == 2:
            return [(cast(rows[0]), cast(rows[1]))] * rank
    elif all(isinstance(r, list) and len(r) in (1, 2) for r in rows):
        pairs = [(cast(r[0]), cast(r[-1])) for r in rows]
        if len(pairs) == 1:
            return pairs * rank
        if len(pairs) == rank:
            return pairs
    raise ValueError(
        f"jnp.pad: {name} with {len(rows)} entries does not fit an array of {rank} axes: give a scalar, (before, after),"
        f" or one pair per axis; got {name}={value}"
    )


def _width(v: Any) -> Any:
    if dims.is_symbolic(v):
        return v
    if isinstance(v, (float, np.floating)) or (hasattr(v, "dtype") and not dtypes.is_integer(v.dtype)):
        raise TypeError(f"`pad_width` must be of integral type, got {v!r}")
    return dims.canonical_dim(v, "pad_width argument of jnp.pad")


# mode -> the keyword arguments it takes, with defaults
_OPTIONS: dict[str, dict[str, Any]] = {
    "constant": {"constant_values": 0}, "edge": {}, "empty": {}, "wrap": {}, "linear_ramp": {"end_values": 0},
    "maximum": {"stat_length": None}, "mean": {"stat_length": None}, "median": {"stat_length": None},
    "minimum": {"stat_length": None}, "reflect": {"reflect_type": "even"}, "symmetric": {"reflect_type": "even"},
}  # fmt: skip


def pad(array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Array:
    """An array with elements added at the ends of its axes.

    Args:
      array: array.
      pad_width: the numbers of elements: an int, (before, after), one pair per axis, or a dictionary from axes to these.
      mode: the values added: "constant" (``constant_values``), "edge" (the last element), "empty" (anything),
        "linear_ramp" (to ``end_values``), "maximum", "mean", "median", "minimum" (of ``stat_length`` elements),
        "reflect" and "symmetric" (mirrored without or with the last element; ``reflect_type`` "even" or "odd"),
        "wrap" (from the other end), or a function ``f(vector, widths, axis, kwargs)`` that returns the vector with its
        ends filled.
      **kwargs: options of the mode.

    Raises:
      ValueError: an option does not go with the mode, or the widths with the array.
      NotImplementedError: the mode does not exist.

    Examples:

      >>> x = jnp.array([1, 2, 3])
      >>> jnp.pad(x, (1, 2))
      Array([0, 1, 2, 3, 0, 0], dtype=int32)
      >>> jnp.pad(x, 2, mode="edge")
      Array([1, 1, 1, 2, 3, 3, 3], dtype=int32)
      >>> jnp.pad(x, 2, mode="reflect")
      Array([3, 2, 1, 2, 3, 2, 1], dtype=int32)
    """
    x = lax.asarray(operand("pad", array))
    if isinstance(pad_width, dict):
        widths: list[Any] = [(0, 0)] * x.ndim
        for axis, w in pad_width.items():
            widths[axis] = _pairs(w, 1, "pad_width", _width)[0]
    else:
        widths = _pairs(pad_width, x.ndim, "pad_width", _width)
    for pair in widths:
        if any(isinstance(n, int) and n < 0 for n in pair):
            raise ValueError(f"jnp.pad: pad_width: index can't contain negative values, got {tuple(pair)}")
    if callable(mode):
        return _with_function(x, widths, mode, kwargs)
    options = _OPTIONS.get(mode)
    if options is None:
        raise NotImplementedError(f"Unimplemented padding mode '{mode}' for np.pad; there are {', '.join(_OPTIONS)}.")
    unknown = set(kwargs) - set(options)
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    option = {**options, **kwargs}
    if mode == "constant":
        return _constant(x, widths, option["constant_values"])
    if mode == "empty":
        return _constant(x, widths, 0)
    if mode == "linear_ramp":
        ends = _pairs(option["end_values"], x.ndim, "end_values", lambda v: v)
        return _each_axis(x, widths, lambda v, axis, w: _ramp(v, axis, w, ends[axis]))
    if mode in ("maximum", "mean", "median", "minimum"):
        given = option["stat_length"]
        lengths = None if given is None else _pairs(given, x.ndim, "stat_length", dims.canonical_dim)
        return _each_axis(x, widths, lambda v, axis, w: _statistic(v, axis, w, mode, lengths and lengths[axis]))
    if mode in ("reflect", "symmetric"):
        kind = option["reflect_type"]
        one_of("pad", "reflect_type", kind, ("even", "odd"))
        return _each_axis(x, widths, lambda v, axis, w: _mirror(v, axis, w, mode == "symmetric", kind == "odd"))
    return _each_axis(x, widths, _FILL[mode])


def _each_axis(x: Array, widths: list[Width], fill: Callable) -> Array:
    for axis, (before, after) in enumerate(widths):
        if isinstance(before, int) and isinstance(after, int) and before == 0 == after:
            continue
        if dims.definitely_equal(x.shape[axis], 0):
            raise ValueError(f"Cannot apply padding to empty axis {axis}: there is nothing to take values from")
        x = fill(x, axis, (before, after))
    return x


def _constant(x: Array, widths: list[Width], values: Any) -> Array:
    cast = lambda v: lax.convert_element_type(operand("pad", v), x.dtype)
    rank = x.ndim
    if not isinstance(values, (list, tuple)) and np.ndim(values) == 0:
        return lax.pad(x, cast(values), [(a, b, 0) for a, b in widths])
    if isinstance(values, (Array, np.ndarray)):
        values = [list(v) if v.ndim else v for v in values]
    for axis, ((before, after), (low, high)) in enumerate(
        zip(widths, _pairs(values, rank, "constant_values", lambda v: v), strict=True)
    ):
        config = lambda a, b, axis=axis: [(a, b, 0) if d == axis else (0, 0, 0) for d in range(rank)]
        x = lax.pad(lax.pad(x, cast(low), config(before, 0)), cast(high), config(0, after))
    return x


def _edge(x: Array, axis: int, width: Width) -> Array:
    n = x.shape[axis]
    wide = lambda part, count: lax.broadcast_in_dim(part, _with(part.shape, axis, count), range(part.ndim))
    first, last = lax.slice_in_dim(x, 0, 1, axis=axis), lax.slice_in_dim(x, n - 1, n, axis=axis)
    return lax.concatenate([wide(first, width[0]), x, wide(last, width[1])], axis)


def _with(shape: tuple, axis: int, n: Any) -> tuple:
    return (*shape[:axis], n, *shape[axis + 1 :])


def _wrap(x: Array, axis: int, width: Width) -> Array:
    n = x.shape[axis]
    before, after = width
    if all(isinstance(v, int) for v in (n, before, after)):
        copies = -(-before // n), -(-after // n)
        parts = [x] * (copies[0] + 1 + copies[1])
        whole = lax.concatenate(parts, axis) if len(parts) > 1 else x
        start = copies[0] * n - before
        return lax.slice_in_dim(whole, start, start + before + n + after, axis=axis)
    start, count = (lax.convert_element_type(dims.dim_as_value(d), np.int32) for d in (before, n))
    places = remainder(lax.iota(np.int32, before + n + after) - start, count)
    return x.at[(slice(None),) * axis + (places,)].get(mode="promise_in_bounds")


_FILL = {"edge": _edge, "wrap": _wrap}


def _mirror(x: Array, axis: int, width: Width, symmetric: bool, odd: bool) -> Array:
    """Pad by reflection, with the last element (symmetric) or without it, repeated until the padding has its width."""
    before, after = width
    if not symmetric and dims.definitely_equal(x.shape[axis], 1):
        return _edge(x, axis, width)  # no element beyond the edge to reflect
    skip = 0 if symmetric else 1
    out = x
    step = x.shape[axis] - skip  # the number of elements that one reflection adds
    if not isinstance(step, int) and not (dims.at_least(step, before) and dims.at_least(step, after)):
        mode = "symmetric" if symmetric else "reflect"
        raise NotImplementedError(
            f"jnp.pad with mode={mode!r} needs a size that is known to exceed the padding {(before, after)}, got"
            f" {x.shape[axis]} along axis {axis}"
        )
    for at_start, left in ((True, before), (False, after)):
        while not isinstance(left, int) or left > 0:
            n = out.shape[axis]
            known = isinstance(step, int) and isinstance(left, int)
            count = min(left, (n - skip) // step * step) if known else left  # the distance between mirrors is `step`
            if at_start:
                part = lax.rev(lax.slice_in_dim(out, skip, skip + count, axis=axis), (axis,))
                edge = lax.slice_in_dim(out, 0, 1, axis=axis)
            else:
                part = lax.rev(lax.slice_in_dim(out, n - skip - count, n - skip, axis=axis), (axis,))
                edge = lax.slice_in_dim(out, n - 1, n, axis=axis)
            if odd:
                edge = lax.broadcast_in_dim(edge, part.shape, range(part.ndim))
                part = lax.sub(lax.add(edge, edge), part)
            out = lax.concatenate([part, out] if at_start else [out, part], axis)
            if not isinstance(left, int):
                break
            left -= count
    return out


def _ramp(x: Array, axis: int, width: Width, ends: tuple) -> Array:
    n = x.shape[axis]
    parts = [x]
    for at_start, (count, end) in enumerate(zip(width, ends, strict=True)):
        edge = lax.slice_in_dim(x, 0, 1, axis=axis) if not at_start else lax.slice_in_dim(x, n - 1, n, axis=axis)
        edge = lax.squeeze(edge, (axis,))
        end = lax.broadcast_in_dim(lax.convert_element_type(end, x.dtype), edge.shape, ())
        ramp = linspace(end, edge, count, endpoint=False, dtype=x.dtype, axis=axis)
        ramp = moveaxis(ramp, axis, axis)
        if at_start:
            parts.append(lax.rev(ramp, (axis,)))
        else:
            parts.insert(0, ramp)
    return lax.concatenate(parts, axis)


def _statistic(x: Array, axis: int, width: Width, mode: str, lengths: tuple | None) -> Array:
    n = x.shape[axis]
    if mode == "median":
        function = median
    else:
        function = {"maximum": reductions.max, "minimum": reductions.min, "mean": reductions.mean}[mode]
    parts = [x]
    for at_end, count in enumerate(width):
        use = n if lengths is None else dims.min_dim(lengths[at_end], n)
        if isinstance(use, int) and use == 0 and mode in ("maximum", "minimum"):
            raise ValueError(f"stat_length of 0 yields no value for padding with mode={mode!r}; it must be 1 or more")
        part = lax.slice_in_dim(x, n - use, n, axis=axis) if at_end else lax.slice_in_dim(x, 0, use, axis=axis)
        value = function(part, axis=axis, keepdims=True)
        if dtypes.is_integer(x.dtype) and not dtypes.is_integer(value.dtype):
            value = round_(value)
        value = lax.convert_element_type(value, x.dtype)
        wide = lax.broadcast_in_dim(value, _with(x.shape, axis, count), range(x.ndim))
        parts.insert(len(parts) if at_end else 0, wide)
    return lax.concatenate(parts, axis)


def _with_function(x: Array, widths: list[Width], function: Callable, kwargs: dict) -> Array:
    x = _constant(x, widths, 0)
    for axis, pair in enumerate(widths):
        x = apply_along_axis(lambda v, pair=pair, axis=axis: function(v, pair, axis, kwargs), axis, x)
    return x
