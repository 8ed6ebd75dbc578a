"""Indexing: an index that has been read (`index_plans`) becomes slices, a gather or a scatter.

Eager calls run one compiled program per plan: neither positions nor index arrays cause compilation. Under a
transformation the operations are bound directly, static ones as slices.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes, positions, tracing
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.one_program import one_program
from bedrax.lax import flags
from bedrax.lax.dynamic_slices import dynamic_slice
from bedrax.lax.operators import _select
from bedrax.lax.primitives import elementwise as ops
from bedrax.lax.primitives import indexing as prims
from bedrax.lax.primitives import shaping
from bedrax.lax.primitives.indexing import GatherDimensionNumbers, GatherScatterMode
from bedrax.numpy.index_plans import ARRAY, ARRAYS, FULL, NEW, POINT, RANGE, WINDOW, Index, Plan, read

_INT32 = np.dtype(np.int32)
_eval_trace = tracing.eval_trace


def getitem(x: Any, idx: Any) -> Any:
    """``x[idx]``."""
    shape = x.shape
    if (
        type(idx) is int and shape and type(shape[0]) is int and 0 < shape[0] <= positions.LIMIT
    ):  # the most common index of all
        size = shape[0]
        start = idx + size if idx < 0 else idx
        if 0 <= start < size:
            if tracing.current.trace is _eval_trace and isinstance(x.dtype, np.dtype):
                return _get_at.of(_point_plan(shape))(x, np.array((start,), _INT32))
            limits = (start + 1, *shape[1:])
            row = shaping.slice_p.bind(
                x, start_indices=(start,) + (0,) * (len(shape) - 1), limit_indices=limits, strides=None
            )
            return shaping.squeeze_p.bind(row, dimensions=(0,))
    index, shape = read(shape, idx)
    if shape is not None:
        x = lax.reshape(x, shape)
    return get(x, index)


def get(
    x: Any,
    index: Index,
    mode: Any = None,
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap: bool = True,
) -> Any:
    """The elements at an index that has been read."""
    if not positions.are_wide(*index.plan.shape):
        return _get(x, index, mode, fill_value, indices_are_sorted, unique_indices, wrap)
    with positions.scope(*index.plan.shape):
        return _get(x, index, mode, fill_value, indices_are_sorted, unique_indices, wrap)


def _get(x, index, mode, fill_value, indices_are_sorted, unique_indices, wrap):
    plan, starts, arrays, static, inside = index
    if mode is not None:
        mode = GatherScatterMode.from_any(mode)
    if not inside and flags.check_static_indices.value:
        if mode is None or mode is GatherScatterMode.PROMISE_IN_BOUNDS:
            _refuse_outside(plan, starts, wrap)
    if not arrays and static and (inside or (mode is None and fill_value is None)):
        if not starts or tracing.current.trace is not _eval_trace or not _plain(x, starts):
            return _get_static(x, plan, starts)
        vector = np.array(starts, _index_dtype(plan.shape))
        return _get_at.of(plan)(x, vector)
    if mode is None:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS if fill_value is None else GatherScatterMode.FILL_OR_DROP
    constants = plan, mode, indices_are_sorted, unique_indices, which_wrap(starts, wrap)
    if tracing.current.trace is not _eval_trace or not _plain(x, starts):
        return _get_dynamic(x, starts, arrays, *constants, fill_value)
    if fill_value is None:
        return _get_dynamic_now.of(*constants)(x, starts, arrays)
    return _get_dynamic_now(x, starts, arrays, *constants, fill_value)


def _refuse_outside(plan: Plan, starts: Sequence[Any], wrap: bool) -> None:
    """Raise an error if a known position, counted from the start of its axis, is out of bounds."""
    placed = [(axis, kind[0]) for axis, kind in enumerate(plan.axes) if kind[0] in (WINDOW, POINT)]
    for (axis, kind), start in zip(placed, starts, strict=True):
        size = plan.shape[axis]
        if kind == POINT and type(start) is int and type(size) is int and not 0 <= start < size:
            given = start - size if wrap and start < 0 else start
            raise IndexError(
                f"index {given} is out of bounds for axis {axis} with size {size}; it is refused because"
                " jax_check_static_indices is set: pass a mode for such indices: x.at[...].get(mode=...)"
            )


def which_wrap(starts: Sequence[Any], wrap: bool) -> tuple[bool, ...]:
    """Whether negative values count from the end: for the index arrays, then for each start (known ones are wrapped already)."""
    return (wrap, *[wrap and hasattr(s, "dtype") for s in starts])


def _plain(x: Any, starts: list) -> bool:
    """Whether an eager call can be one program."""
    return isinstance(x.dtype, np.dtype) and not any(dims.is_symbolic(s) for s in starts)


@functools.lru_cache(4096)
def _point_plan(shape: tuple) -> Plan:
    return read(shape, 0)[0].plan


@one_program(static=("plan",), everywhere=True)
def _get_at(x, vector, plan: Plan):
    """Windows and points at static positions. These are an argument, so one program serves all positions."""
    starts = [lax.index_in_dim(vector, i, keepdims=False) for i in range(vector.shape[0])]
    return _get_windows(x, plan, starts, (False,) * (len(starts) + 1))


def _get_static(x: Any, plan: Plan, starts: Sequence[Any]) -> Any:
    """Windows, points and ranges at known positions: slice, reverse, reshape."""
    shape, axes = plan.shape, plan.axes
    low, high, step, reverse, sliced = [], [], [], [], False
    it = iter(starts)
    for axis, (size, kind) in enumerate(zip(shape, axes, strict=True)):
        what = kind[0]
        if what == FULL:
            a, b, s = 0, size, 1
        elif what == WINDOW:
            a = next(it)
            b, s, sliced = a + kind[1], 1, True
        elif what == POINT:
            a = next(it)
            if type(a) is int and type(size) is int:
                if size == 0:
                    raise IndexError(f"index {a} is out of bounds for axis {axis} with size 0")
                if not 0 <= a < size:  # moved inside by an operation, which a check of indices can read
                    return _get_windows(x, plan, starts, (False,) * (len(starts) + 1))
            else:
                a = dims.min_dim(dims.max_dim(a, 0), size - 1)
            b, s = a + 1, 1
            sliced = sliced or not (type(size) is int and size == 1)
        else:
            a, count, s = kind[1:]
            sliced = sliced or s != -1 or not dims.definitely_equal(count, size)
            backward = s < 0
            s = -s if backward else s
            reach = dims.non_negative((count - 1) * s + 1)  # from the first element to the last
            if backward:
                reverse.append(axis)
                a, b = (dims.non_negative(a + 1 - reach), a + 1) if not dims.definitely_equal(count, 0) else (0, 0)
            else:
                b = dims.min_dim(a + reach, size)
        low.append(a)
        high.append(b)
        step.append(s)
    if sliced:
        strides = None if all(type(s) is int and s == 1 for s in step) else tuple(step)
        x = shaping.slice_p.bind(x, start_indices=tuple(low), limit_indices=tuple(high), strides=strides)
    if reverse:
        x = lax.rev(x, reverse)
    return _arrange(x, plan)


def _arrange(x: Any, plan: Plan) -> Any:
    """Drop the axes of points, and insert the new axes."""
    points = [i for i, kind in enumerate(plan.axes) if kind[0] == POINT]
    if points:
        x = shaping.squeeze_p.bind(x, dimensions=tuple(points))
    if NEW in plan.layout:
        x = lax.expand_dims(x, [i for i, source in enumerate(plan.layout) if source == NEW])
    return x if isinstance(x, Array) else lax.asarray(x)


def _get_windows(x: Any, plan: Plan, starts: Sequence[Any], wraps: tuple) -> Any:
    """Windows and points at computed positions, moved inside where they overrun; ranges are static."""
    axes = plan.axes
    if any(kind[0] == RANGE for kind in axes):
        x, plan = _take_ranges(x, plan)
    if takes_nothing(plan):
        return lax.reshape(x, plan.result_shape)
    sizes, at, negative = [], [], []
    it = iter(zip(starts, wraps[1:], strict=True))
    for size, kind in zip(plan.shape, plan.axes, strict=True):
        what = kind[0]
        sizes.append(size if what == FULL else kind[1] if what == WINDOW else 1)
        start, wrap = (0, False) if what == FULL else next(it)
        at.append(start)
        negative.append(wrap)
    x = dynamic_slice(x, _one_dtype(at, plan.shape), tuple(sizes), allow_negative_indices=tuple(negative))
    return _arrange(x, plan)


def _one_dtype(starts: list, shape: tuple) -> list:
    """Scalars of different integer types as scalars of one."""
    kinds = {s.dtype for s in starts if hasattr(s, "dtype")}
    if len(kinds) < 2:
        return starts
    dtype = _index_dtype(shape, kinds)
    return [lax.convert_to(s, dtype, False) if hasattr(s, "dtype") else s for s in starts]


def _index_dtype(shape: tuple, kinds: set = frozenset()) -> np.dtype:
    wide = positions.are_wide(*shape) or any(k.itemsize == 8 for k in kinds)
    return dtypes.canonicalize_dtype(np.int64) if wide else _INT32


def takes_nothing(plan: Plan, kinds: tuple[Any, ...] = (POINT, ARRAY)) -> bool:
    """Whether an index of these kinds indexes an axis of length 0.

    Raises:
      IndexError: the result has an element.
    """
    for axis, (size, kind) in enumerate(zip(plan.shape, plan.axes, strict=True)):
        if type(size) is int and size == 0 and kind[0] in kinds:
            if not any(type(n) is int and n == 0 for n in plan.result_shape):
                raise IndexError(
                    f"no index is in bounds along axis {axis} of an array of shape {plan.shape}: it is empty"
                )
            return True
    return False


def _take_ranges(x: Any, plan: Plan) -> tuple[Any, Plan]:
    """Take the static ranges first; return the result and the plan that remains, with those axes full."""
    ranges = Plan(
        plan.shape, tuple(k if k[0] == RANGE else (FULL,) for k in plan.axes), tuple(range(len(plan.axes))), ()
    )
    x = _get_static(x, ranges, ())
    shape = tuple([k[2] if k[0] == RANGE else n for n, k in zip(plan.shape, plan.axes, strict=True)])
    return x, Plan(shape, tuple((FULL,) if k[0] == RANGE else k for k in plan.axes), plan.layout, plan.block)


def _get_dynamic(x, starts, arrays, plan, mode, indices_are_sorted, unique_indices, wraps, fill_value=None):
    if any(kind[0] == RANGE for kind in plan.axes):
        x, plan = _take_ranges(x, plan)
    clamps = mode in (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS) and fill_value is None
    if not arrays and clamps:
        return _get_windows(x, plan, starts, wraps)
    if takes_nothing(plan):
        return lax.reshape(x, plan.result_shape)
    numbers, vectors, sizes = _gather_plan(plan)
    indices = index_vectors(plan, starts, arrays, wraps, vectors)
    if not arrays:
        indices_are_sorted = unique_indices = True
    out = prims.gather(
        x,
        indices,
        numbers,
        sizes,
        mode=mode,
        fill_value=fill_value,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
    )
    if NEW in plan.layout:
        out = lax.reshape(out, plan.result_shape)
    return out


_get_dynamic_now = one_program(
    _get_dynamic,
    everywhere=True,
    static=("plan", "mode", "indices_are_sorted", "unique_indices", "wraps", "fill_value"),
)


@functools.lru_cache(4096)
def _gather_plan(plan: Plan) -> tuple[GatherDimensionNumbers, tuple, tuple]:
    """(dimension numbers, layout of the dimensions of index vectors, window sizes).

    A RANGE axis counts as an index array of its own, so that the same numbers serve scatters.
    """
    offset, position = [], 0
    batch: list[Any] = []
    for source in plan.layout:
        if source == NEW:
            continue
        if source == ARRAYS:
            batch.append(ARRAYS)
            position += len(plan.block)
        elif plan.axes[source][0] == RANGE:
            batch.append(source)
            position += 1
        else:
            offset.append(position)
            position += 1
    gone = tuple(i for i, k in enumerate(plan.axes) if k[0] in (POINT, ARRAY, RANGE))
    mapped = tuple(i for i, k in enumerate(plan.axes) if k[0] != FULL)
    sizes = tuple(
        n if k[0] == FULL else k[1] if k[0] == WINDOW else 1 for n, k in zip(plan.shape, plan.axes, strict=True)
    )
    return GatherDimensionNumbers(tuple(offset), gone, mapped), tuple(batch), sizes


def index_vectors(
    plan: Plan, starts: Sequence[Any], arrays: Sequence[Any], wraps: tuple[Any, ...], batch: tuple[Any, ...]
) -> Any:
    """The integer array of the starts of windows; its last axis runs through the mapped axes."""
    shape: list[Any] = []
    where: dict[Any, Any] = {}
    for source in batch:
        if source == ARRAYS:
            where[ARRAYS] = tuple(range(len(shape), len(shape) + len(plan.block)))
            shape.extend(plan.block)
        else:
            where[source] = (len(shape),)
            shape.append(plan.axes[source][2])
    kinds = {a.dtype for a in (*arrays, *starts) if hasattr(a, "dtype")}
    dtype = _index_dtype(plan.shape, {dtypes.canonicalize_dtype(k) for k in kinds})
    parts = []
    it = iter(zip(starts, wraps[1:], strict=True))
    for axis, kind in enumerate(plan.axes):
        what = kind[0]
        if what == FULL:
            continue
        if what == RANGE:
            part = (
                kind[1] + kind[3] * np.arange(kind[2])
                if dims.is_constant_dim(kind[2])
                else _symbolic_range(kind, dtype)
            )
            parts.append((_typed(part, dtype), where[axis]))
        elif what == ARRAY:
            part = arrays[kind[1]]
            lead = where[ARRAYS]
            parts.append((_wrapped(part, plan.shape[axis], dtype, wraps[0]), lead[len(lead) - part.ndim :]))
        else:
            start, wrap = next(it)
            wrapped = (
                _wrapped(start, plan.shape[axis], dtype, wrap)
                if hasattr(start, "dtype")
                else (_typed(dims.dim_as_value(start), dtype))
            )
            parts.append((wrapped, ()))
    full = (*shape, 1)
    if all(isinstance(p, np.ndarray) for p, _ in parts):  # known: a constant
        columns = []
        for p, lead in parts:
            own = [1] * len(full)
            for i, n in zip(lead, p.shape, strict=True):
                own[i] = n
            columns.append(np.broadcast_to(p.reshape(own), full))
        return np.concatenate(columns, -1) if columns else np.zeros((*shape, 0), dtype)
    columns = []
    for p, lead in parts:
        lengths = aval_of(p).shape
        keep = [
            i
            for i, n in enumerate(lengths)
            if not (dims.definitely_equal(n, 1) and not dims.definitely_equal(full[lead[i]], 1))
        ]
        if len(keep) < len(lengths):
            p = lax.squeeze(p, [i for i in range(len(lengths)) if i not in keep])
        columns.append(shaping.broadcast_in_dim(p, full, [lead[i] for i in keep]))
    return lax.concatenate(columns, len(shape))


def _symbolic_range(kind: tuple, dtype: np.dtype) -> Any:
    _, start, count, step = kind
    value = lax.mul(lax.iota(dtype, count), _typed(dims.dim_as_value(step), dtype))
    return lax.add(value, _typed(dims.dim_as_value(start), dtype))


def _typed(x: Any, dtype: np.dtype) -> Any:
    if isinstance(x, (int, np.ndarray, np.generic)):
        return np.asarray(x, dtype)
    return lax.convert_to(x, dtype, False)


def _wrapped(i: Any, size: Any, dtype: np.dtype, wrap: bool) -> Any:
    """Index values in `dtype`, negative ones counted from the end."""
    own = i.dtype
    signed = wrap and not dtypes.is_unsigned_integer(own)
    if isinstance(i, (np.ndarray, np.generic)) and type(size) is int:
        i = np.asarray(i)
        if i.dtype.itemsize > dtype.itemsize or (not signed and i.dtype.itemsize == dtype.itemsize):
            limit = np.iinfo(dtype)
            i = np.clip(i, limit.min if dtypes.is_signed_integer(own) else 0, limit.max)
        i = i.astype(dtype)
        return np.where(i < 0, i + dtype.type(size), i) if signed else i
    i = lax.convert_to(i, dtype, False)
    if not signed:
        return i
    zero = dtype.type(0)
    n = dtype.type(size) if type(size) is int else _typed(dims.dim_as_value(size), dtype)
    return _select(ops.lt_p.bind(i, zero), ops.add_p.bind(i, n), i)
