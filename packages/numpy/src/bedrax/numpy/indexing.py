"""Indexing: what `x[...]` means, read into a plan once, and carried out by slices, a gather or a scatter.

`read` splits an index into a `Plan`, which is static and hashable (what happens to every axis, where the
axes of the result come from), and operands: the positions at which windows start, and index arrays. Eager
calls are one compiled program per plan, so that neither positions nor index arrays
cause compilation; under a transformation the operations are bound directly, static ones as slices.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes, errors, tracing
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.one_program import one_program
from bedrax.lax.dynamic_slices import dynamic_slice
from bedrax.lax.operators import _select
from bedrax.lax.primitives import elementwise as ops
from bedrax.lax.primitives import indexing as prims
from bedrax.lax.primitives import shaping
from bedrax.lax.primitives.indexing import GatherDimensionNumbers, GatherScatterMode
from bedrax.numpy_backend.host_array import HostArray

_INT32 = np.dtype(np.int32)
_eval_trace = tracing.eval_trace


def concrete_value(x: Any) -> np.ndarray | None:
    """The value of an array as NumPy's, or None if it is traced."""
    if isinstance(x, tracing.Tracer):
        x = x.concrete()
        if x is None or isinstance(x, tracing.Tracer):
            return None
    return np.asarray(x)


# ---- reading ---------------------------------------------------------------------------------------------------

# What happens to an axis of the array: all of it stays; a window of `size` from a computed start; a strided
# range, static; one position; positions given by arrays.
FULL, WINDOW, RANGE, POINT, ARRAY = range(5)
# Where an axis of the result comes from: an axis of the array (its number), a new axis, or the index arrays.
NEW, ARRAYS = -1, -2


class Plan(NamedTuple):
    """The static part of an index into arrays of one shape.

    Attributes:
      shape: that of the array.
      axes: for each of its axes ``(FULL,)``, ``(WINDOW, size)``, ``(RANGE, start, count, step)``, ``(POINT,)`` or
        ``(ARRAY, i)``, the number of the index array.
      layout: for the result, axes that stay, `NEW` and (at most once) `ARRAYS`.
      block: the common shape of the index arrays.
    """

    shape: tuple
    axes: tuple
    layout: tuple
    block: tuple

    @property
    def result_shape(self) -> tuple:
        out: list = []
        for source in self.layout:
            if source == NEW:
                out.append(1)
            elif source == ARRAYS:
                out.extend(self.block)
            else:
                out.append(self.kept(source))
        return tuple(out)

    def kept(self, axis: int):
        """The length of what stays of an axis."""
        kind = self.axes[axis]
        return self.shape[axis] if kind[0] == FULL else kind[1] if kind[0] == WINDOW else kind[2]


class Index(NamedTuple):
    """An index that has been read.

    Attributes:
      plan: the static part.
      starts: for each `WINDOW` and `POINT` axis, in order, where it starts: an int or a scalar array.
      arrays: the index arrays.
      static: whether all starts are ints (or symbolic dimensions).
      inside: whether all starts are known to be in bounds.
    """

    plan: Plan
    starts: list
    arrays: list
    static: bool
    inside: bool


def _bounds(s: slice, size: Any) -> tuple[Any, Any, Any]:
    """(start, count, step) of a slice of an axis."""
    start, stop, step = (_slice_entry(v, s) for v in (s.start, s.stop, s.step))
    if type(size) is int and all(v is None or type(v) is int for v in (start, stop, step)):
        start, stop, step = slice(start, stop, step).indices(size)
        return start, len(range(start, stop, step)), step
    step = 1 if step is None else step
    if not dims.is_constant_dim(step) or step == 0:
        raise IndexError(f"the step of a slice of an axis of symbolic length must be a known number other than 0: {s}")
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def clip(v, default):
        if v is None:
            return default
        if (v < 0) if dims.is_constant_dim(v) else False:
            return dims.max_dim(v + size, low)
        return v if v is size else dims.min_dim(v, high)

    start, stop = clip(start, low if step > 0 else high), clip(stop, high if step > 0 else low)
    length = dims.non_negative(stop - start if step > 0 else start - stop)
    return start, length if abs(step) == 1 else (length + abs(step) - 1) // abs(step), step


def _surely_inside(i: Any, size: Any) -> bool:
    """Whether ``0 <= i < size`` for all values of symbols."""
    try:
        return bool(i >= 0) and bool(i < size)
    except dims.InconclusiveDimensionOperation:
        return False


def _slice_entry(v: Any, s: slice) -> Any:
    if v is None or type(v) is int or dims.is_symbolic(v):
        return v
    try:
        return int(operator.index(v))
    except (TypeError, errors.JAXTypeError):
        raise IndexError(
            f"the bounds of a slice are known integers, as they decide a shape; got {s}. Use lax.dynamic_slice_in_dim"
            " for a start that is computed."
        ) from None


_LISTS = (
    "a list as index may stand for an array or for one index per axis: write x[jnp.array(i)] for the first,"
    " x[tuple(i)] for the second"
)


def _entry(i: Any, position: int) -> Any:
    """An index that is neither int, slice, None nor Ellipsis, as an array or a bool."""
    if isinstance(i, (bool, np.bool_)):
        return np.bool_(i)
    if isinstance(i, (list, tuple)):
        raise TypeError(_LISTS)
    if isinstance(i, str):
        raise TypeError(f"arrays have no fields: an index is no text, got {i!r}")
    if not isinstance(i, (Array, np.ndarray, np.generic)):
        if hasattr(i, "__jax_array__"):
            i = i.__jax_array__()
        elif hasattr(i, "__index__") and not isinstance(i, float):
            return operator.index(i)
        else:
            i = np.asarray(i)
    dtype = i.dtype
    if dtype == np.bool_ or dtypes.is_integer(dtype):
        return i
    if isinstance(i, np.ndarray) and i.size == 0 and dtype == np.float64:
        return i.astype(np.int32)  # np.asarray([])
    raise TypeError(f"an index is an integer or a mask, got {i!r} of dtype {dtype} at position {position}")  # fmt: skip


class _Reading(NamedTuple):
    """What an index means whatever the values in it are.

    Attributes:
      plan: the static part.
      starts: for each `WINDOW` and `POINT` axis ``(i, size, start)``: value number `i` into an axis of that size,
        or, where `i` is negative, a known start.
      arrays: which values are the index arrays.
      static: whether no start is an array.
      shape: the shape to give the array first, or None.
    """

    plan: Plan
    starts: tuple
    arrays: tuple
    static: bool
    shape: tuple | None


def read(shape: tuple, idx: Any) -> tuple[Index, tuple | None]:
    """Read an index into arrays of a shape.

    Returns:
      The index, and the shape to give the array first, or None: a bool scalar indexes an axis of length 1 that
      is made for it.

    Raises:
      IndexError: too many indices, or a mask of another shape.
      TypeError: an index is of a type that cannot index.
      NonConcreteBooleanIndexError: a mask is traced, so the number of elements is not known.
    """
    if type(idx) is not tuple:
        if isinstance(idx, list):
            raise TypeError(_LISTS)
        idx = (idx,)
    forms: list = []
    values: list = []
    for position, i in enumerate(idx):
        kind = type(i)
        if kind is int:
            forms.append(_POSITION)
            values.append(i)
        elif kind is slice:
            forms.append(tuple([_slice_entry(v, i) for v in (i.start, i.stop, i.step)]))
        elif i is None or i is Ellipsis:
            forms.append(i)
        else:
            _read_value(i, position, forms, values)
    plan, starts_of, arrays_of, static, shape = _reading(shape, tuple(forms))
    starts: list = []
    inside = static
    for k, size, start in starts_of:
        if k >= 0:
            start = values[k]
            if type(start) is int and type(size) is int:
                if start < 0:
                    start += size
                inside = inside and 0 <= start < size
            else:
                inside = inside and _surely_inside(start, size)
        starts.append(start)
    return Index(plan, starts, [values[k] for k in arrays_of], static, inside), shape


# Forms of entries of an index: None, Ellipsis, the three bounds of a slice, and these.
_POSITION, _SCALAR = "a known position", "a scalar array"
_ARRAY, _MASK, _FLAG = "an index array", "a mask", "a bool"  # with the shapes of itself and of its index arrays


def _read_value(i: Any, position: int, forms: list, values: list) -> None:
    """Add the form of an entry that is neither int, slice, None nor Ellipsis, and its values."""
    if not dims.is_symbolic(i):
        i = _entry(i, position)
    if type(i) is int or dims.is_symbolic(i):
        forms.append(_POSITION)
        values.append(i)
    elif i.dtype == np.bool_:
        mask = concrete_value(i)
        if mask is None:
            raise errors.NonConcreteBooleanIndexError(i)
        hits = np.nonzero(mask) if mask.ndim else (np.zeros(int(mask), _INT32),)
        forms.append((_MASK, mask.shape, (len(hits[0]),)) if mask.ndim else (_FLAG, (), (len(hits[0]),)))
        values.extend([h.astype(_INT32) for h in hits])
    elif i.ndim:
        forms.append((_ARRAY, (), i.shape))
        values.append(i)
    elif isinstance(i, (np.ndarray, np.generic, HostArray)):
        forms.append(_POSITION)
        values.append(int(i))
    else:
        forms.append(_SCALAR)
        values.append(i)


class _Reader:
    """Reads the forms of entries one after the other; each method reads one kind."""

    def __init__(self, shape: tuple, has_array: bool):
        self.shape = shape
        self.has_array = has_array
        self.axes: list = []
        self.layout: list = []
        self.starts: list = []
        self.arrays: list = []
        self.blocks: list = []
        self.values = 0
        self.position = 0
        # Of index arrays and points: where the group stands, and whether something stands between its members.
        self.first = self.last = None
        self.split = False

    def member(self) -> None:
        if not self.has_array:
            return
        if self.first is None:
            self.first = len(self.layout)
        elif self.last != self.position - 1:
            self.split = True
        self.last = self.position

    def value(self) -> int:
        self.values += 1
        return self.values - 1

    def ellipsis(self, missing: int) -> None:
        for _ in range(missing):
            self.layout.append(len(self.axes))
            self.axes.append((FULL,))

    def slice(self, bounds: tuple) -> None:
        axis = len(self.axes)
        size = self.shape[axis]
        self.layout.append(axis)
        if bounds == (None, None, None):
            self.axes.append((FULL,))
            return
        start, count, step = _bounds(slice(*bounds), size)
        if step != 1:
            self.axes.append((RANGE, start, count, step))
        elif count is size or dims.definitely_equal(count, size):
            self.axes.append((FULL,))
        else:
            self.axes.append((WINDOW, count))
            self.starts.append((-1, size, start))

    def point(self) -> None:
        self.member()
        self.starts.append((self.value(), self.shape[len(self.axes)], None))
        self.axes.append((POINT,))

    def array(self, block: tuple) -> None:
        self.axes.append((ARRAY, len(self.arrays)))
        self.arrays.append(self.value())
        self.blocks.append(block)

    def mask(self, shape: tuple, hits: tuple) -> None:
        axis = len(self.axes)
        for k, n in enumerate(shape):
            if not dims.definitely_equal(self.shape[axis + k], n):
                raise IndexError(
                    f"boolean index did not match shape of indexed array in index {axis + k}: got {shape},"
                    f" expected {list(self.shape[axis : axis + len(shape)])}"
                )
        for _ in shape:
            self.array(hits)

    def plan(self) -> Plan:
        block: tuple = ()
        if self.arrays:
            try:
                block = shaping.broadcast_shapes(*self.blocks)
            except ValueError:
                raise IndexError(
                    "shape mismatch: indexing arrays could not be broadcast together with shapes "
                    + " ".join(map(str, self.blocks))
                ) from None
            self.layout.insert(0 if self.split else self.first, ARRAYS)
        return Plan(self.shape, tuple(self.axes), tuple(self.layout), block)


def _consumed(form: Any) -> int:
    """How many axes of the array an entry takes."""
    if form is None or form is Ellipsis:
        return 0
    return len(form[1]) if form[0] in (_MASK, _FLAG) else 1


@functools.lru_cache(4096)
def _reading(shape: tuple, forms: tuple) -> _Reading:
    """What entries of these forms mean for arrays of a shape."""
    missing = len(shape) - sum(map(_consumed, forms))
    if sum(f is Ellipsis for f in forms) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if missing < 0:
        raise IndexError(f"too many indices: {len(shape) - missing} for an array of rank {len(shape)}")
    if Ellipsis not in forms:
        forms = (*forms, Ellipsis)
    flags = any(type(f) is tuple and f[0] == _FLAG for f in forms)
    if flags:
        shape = _with_axes_of_flags(shape, forms, missing)
    reader = _Reader(shape, any(type(f) is tuple and f[0] in (_ARRAY, _MASK, _FLAG) for f in forms))
    for form in forms:
        if form is Ellipsis:
            reader.ellipsis(missing)  # it separates, even where it stands for nothing
        elif form is None:
            reader.layout.append(NEW)
        elif form is _POSITION or form is _SCALAR:
            reader.point()
        elif form[0] in (_ARRAY, _MASK, _FLAG):
            reader.member()
            if form[0] is _MASK:
                reader.mask(*form[1:])
            else:
                reader.array(form[-1])
        else:
            reader.slice(form)
        reader.position += 1
    return _Reading(
        reader.plan(), tuple(reader.starts), tuple(reader.arrays), _SCALAR not in forms, shape if flags else None
    )


def _with_axes_of_flags(shape: tuple, forms: tuple, missing: int) -> tuple:
    """A scalar bool is an index array for an axis of length 1 made for it."""
    new: list = []
    axis = 0
    for form in forms:
        if type(form) is tuple and form[0] is _FLAG:
            new.append(1)
            continue
        count = missing if form is Ellipsis else _consumed(form)
        new.extend(shape[axis : axis + count])
        axis += count
    return tuple(new)


# ---- carrying out: reading from an array ---------------------------------------------------------------------------


def getitem(x: Any, idx: Any) -> Any:
    """``x[idx]``."""
    shape = x.shape
    if type(idx) is int and shape and type(shape[0]) is int and shape[0]:  # the most common index of all
        size = shape[0]
        start = idx + size if idx < 0 else idx
        start = 0 if start < 0 else start if start < size else size - 1
        if tracing.current.trace is not _eval_trace or not isinstance(x.dtype, np.dtype):
            limits = (start + 1, *shape[1:])
            row = shaping.slice_p.bind(
                x, start_indices=(start,) + (0,) * (len(shape) - 1), limit_indices=limits, strides=None
            )
            return shaping.squeeze_p.bind(row, dimensions=(0,))
        return _get_at.of(_point_plan(shape))(x, np.array((start,), _INT32))
    index, shape = read(shape, idx)
    if shape is not None:
        x = lax.reshape(x, shape)
    return get(x, index)


def get(
    x: Any, index: Index, mode: Any = None, fill_value: Any = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, wrap: bool = True,
) -> Any:  # fmt: skip
    """The elements at an index that has been read."""
    plan, starts, arrays, static, inside = index
    if not arrays and static and (inside or (mode is None and fill_value is None)):
        if not starts or tracing.current.trace is not _eval_trace or not _plain(x, starts):
            return _get_static(x, plan, starts)
        vector = np.array(starts, _index_dtype(plan.shape))
        return _get_at.of(plan)(x, vector)
    if mode is None:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS if fill_value is None else GatherScatterMode.FILL_OR_DROP
    else:
        mode = GatherScatterMode.from_any(mode)
    constants = plan, mode, indices_are_sorted, unique_indices, which_wrap(starts, wrap)
    if tracing.current.trace is not _eval_trace or not _plain(x, starts):
        return _get_dynamic(x, starts, arrays, *constants, fill_value)
    if fill_value is None:
        return _get_dynamic_now.of(*constants)(x, starts, arrays)
    return _get_dynamic_now(x, starts, arrays, *constants, fill_value)


def which_wrap(starts: Sequence[Any], wrap: bool) -> tuple[bool, ...]:
    """Whether negative values count from the end: of the index arrays, then of each start (known ones did before)."""
    return (wrap, *[wrap and hasattr(s, "dtype") for s in starts])


def _plain(x: Any, starts: list) -> bool:
    """Whether an eager call can be one program."""
    return isinstance(x.dtype, np.dtype) and not any(dims.is_symbolic(s) for s in starts)


@functools.lru_cache(4096)
def _point_plan(shape: tuple) -> Plan:
    return read(shape, 0)[0].plan


@one_program(static=("plan",), everywhere=True)
def _get_at(x, vector, plan: Plan):
    """Windows and points at static positions, which are an argument, so that nothing is compiled anew."""
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
                if not 0 <= a < size:  # moved inside by an operation, so that a check of indices sees it
                    return _get_windows(x, plan, starts, (False,) * (len(starts) + 1))
            else:
                a = dims.min_dim(dims.max_dim(a, 0), size - 1)
            b, s = a + 1, 1
            sliced = sliced or not (type(size) is int and size == 1)
        else:
            a, count, s = kind[1:]
            sliced = sliced or s != -1 or not dims.definitely_equal(count, size)
            if s < 0:
                reverse.append(axis)
                s = -s
                a, b = (a - (count - 1) * s, a + 1) if not dims.definitely_equal(count, 0) else (0, 0)
            else:
                b = a + (count - 1) * s + 1 if not dims.definitely_equal(count, 0) else a
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
    """Drop the axes of points, and make the new ones."""
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
    wide = any(type(n) is int and n > 2**31 - 1 for n in shape) or any(k.itemsize == 8 for k in kinds)
    return dtypes.canonicalize_dtype(np.int64) if wide else _INT32


def _take_ranges(x: Any, plan: Plan) -> tuple[Any, Plan]:
    """Do the static ranges first; what is left has all of their axes."""
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
    numbers, vectors, sizes = _gather_plan(plan)
    indices = index_vectors(plan, starts, arrays, wraps, vectors)
    if not arrays:
        indices_are_sorted = unique_indices = True
    out = prims.gather(
        x, indices, numbers, sizes, mode=mode, fill_value=fill_value, indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
    )  # fmt: skip
    if NEW in plan.layout:
        out = lax.reshape(out, plan.result_shape)
    return out


_get_dynamic_now = one_program(
    _get_dynamic, everywhere=True,
    static=("plan", "mode", "indices_are_sorted", "unique_indices", "wraps", "fill_value"),
)  # fmt: skip


@functools.lru_cache(4096)
def _gather_plan(plan: Plan) -> tuple[GatherDimensionNumbers, tuple, tuple]:
    """(dimension numbers, the layout of the dimensions that index vectors have, window sizes).

    A RANGE axis counts as an index array of its own, so that the same numbers serve scatters.
    """
    offset, position = [], 0
    batch: list = []
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


def index_vectors(plan: Plan, starts: Sequence[Any], arrays: Sequence[Any], wraps: tuple, batch: tuple) -> Any:
    """The integer array whose last axis holds, for each window, where it starts along the mapped axes."""
    shape: list = []
    where: dict = {}
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
            wrapped = _wrapped(start, plan.shape[axis], dtype, wrap) if hasattr(start, "dtype") else (
                _typed(dims.dim_as_value(start), dtype))  # fmt: skip
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
    value = lax.mul(lax.iota(dtype, count), dtype.type(step))
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
