"""Plans of `x[...]`: an index is read once into a static, hashable `Plan` and operands.

The parts that do not depend on the values in an index are cached per shape and form of its entries.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from bedrax import pytree
from bedrax.core import dims, dtypes, errors, tracing
from bedrax.core.array import Array
from bedrax.core.codes import coded
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives import shaping
from bedrax.numpy import creation
from bedrax.numpy_backend.host_array import HostArray

_INT32 = np.dtype(np.int32)


@errors.public_error
class NonConcreteBooleanIndexError(errors.JAXIndexError):
    """An array was indexed by a traced mask: the size of the result would depend on its values.

    A program that fails::

      @jit
      def positive_sum(x):
          return x[x > 0].sum()           # raises NonConcreteBooleanIndexError

    Repaired by keeping the size::

      @jit
      def positive_sum(x):
          return jnp.where(x > 0, x, 0).sum()

    `x.at[mask].set(v)` with a scalar `v` is allowed, and `jnp.where(mask, size=n)` finds at most `n` places.

    Examples:

      >>> @jax.jit
      ... def positive(x):
      ...     return x[x > 0]
      ...
      >>> try:
      ...     positive(jnp.array([-1, 1]))
      ... except jax.errors.NonConcreteBooleanIndexError:
      ...     print("how many are positive is not known; use jnp.where(x > 0, x, 0)")
      ...
      how many are positive is not known; use jnp.where(x > 0, x, 0)
    """

    code = "BX-TRACED-MASK"

    def __init__(self, tracer: Any) -> None:
        super().__init__(
            f"an array is indexed by a traced mask of type {errors.shaped(tracer)}, whose elements decide the shape of the"
            f" result.{errors.origin_of(tracer)}\n"
            "Use jnp.where(mask, x, fill) to keep the shape, or jnp.nonzero(mask, size=n) for a fixed number of places."
        )


def concrete_value(x: ArrayLike) -> np.ndarray | None:
    """The value of an array as NumPy's, or None if it is traced."""
    if isinstance(x, tracing.Tracer):
        x = x.concrete()
        if x is None or isinstance(x, tracing.Tracer):
            return None
    return np.asarray(x)


# The kinds of axes of the array: all of it stays; a window of `size` from a computed start; a strided
# range, static; one position; positions given by arrays.
FULL, WINDOW, RANGE, POINT, ARRAY = range(5)
# The source of an axis of the result: an axis of the array (its number), a new axis, or the index arrays.
NEW, ARRAYS = -1, -2


@dataclass(frozen=True, eq=False)
class Slice:
    """`size` positions from `start` in steps of `stride`. The start may be computed; it is clamped into bounds.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = x_ref[pl.Slice(1, 3, stride=2)]
      ...
      >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), jnp.int32), interpret=True)(jnp.arange(8))
      Array([1, 3, 5], dtype=int32)
      >>> pl.ds(2, 4)  # a shorter way to write one
      Slice(start=2, size=4, stride=1)
    """

    start: Any
    size: int
    stride: int = 1


class Plan(NamedTuple):
    """The static part of an index into arrays of one shape.

    Attributes:
      shape: that of the array.
      axes: for each of its axes ``(FULL,)``, ``(WINDOW, size)``, ``(RANGE, start, count, step)``, ``(POINT,)`` or
        ``(ARRAY, i)``, the number of the index array.
      layout: for the result, axes that stay, `NEW` and (at most once) `ARRAYS`.
      block: the common shape of the index arrays.
    """

    shape: tuple[Any, ...]
    axes: tuple[Any, ...]
    layout: tuple[Any, ...]
    block: tuple[Any, ...]

    @property
    def result_shape(self) -> tuple[Any, ...]:
        out: list[Any] = []
        for source in self.layout:
            if source == NEW:
                out.append(1)
            elif source == ARRAYS:
                out.extend(self.block)
            else:
                out.append(self.kept(source))
        return tuple(out)

    def kept(self, axis: int) -> int:
        """The number of positions of an axis that the index keeps."""
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
    starts: list[Any]
    arrays: list[Any]
    static: bool
    inside: bool


def _bounds(s: slice, size: Any) -> tuple[Any, Any, Any]:
    """(start, count, step) of a slice of an axis."""
    start, stop, step = (_slice_entry(v, s) for v in (s.start, s.stop, s.step))
    if type(size) is int and all(v is None or type(v) is int for v in (start, stop, step)):
        start, stop, step = slice(start, stop, step).indices(size)
        return start, len(range(start, stop, step)), step
    step = 1 if step is None else step
    if dims.definitely_equal(step, 0):
        raise IndexError(f"the step of a slice is not 0, got {s}")
    forward = bool(step > 0)  # raises if the sign depends on symbolic sizes
    low, high = (0, size) if forward else (-1, size - 1)

    def clip(v, default):
        if v is None:
            return default
        if v < 0:
            return dims.max_dim(v + size, low)
        return v if forward and v is size else dims.min_dim(v, high)

    start, stop = clip(start, low if forward else high), clip(stop, high if forward else low)
    length = dims.non_negative(stop - start if forward else start - stop)
    stride = step if forward else -step
    return start, length if dims.definitely_equal(stride, 1) else (length + stride - 1) // stride, step


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
        if isinstance(v, (float, complex, np.floating, np.complexfloating)):
            raise TypeError(f"the bounds of a slice are integers, got {v!r} in {s}") from None
        message = (
            f"the bounds of a slice are known integers, as they decide a shape; got {s}. Use lax.dynamic_slice_in_dim"
            " for a start that is computed."
        )
        raise IndexError(coded("BX-SHAPE-VALUE", f"{message}{errors.origin_of(v)}")) from None


_LISTS = (
    "a list as index may stand for an array or for one index per axis: write x[jnp.array(i)] for the first,"
    " x[tuple(i)] for the second"
)


def _array_of(entries: Any) -> Any:
    """A nested list or tuple, which is one entry of an index, as an array."""
    if any(isinstance(leaf, tracing.Tracer) for leaf in pytree.tree_leaves(entries)):
        return creation.asarray(entries)
    return np.asarray(entries)


def _entry(i: Any, position: int) -> Any:
    """An index that is neither int, slice, None nor Ellipsis, as an array or a bool."""
    if isinstance(i, (bool, np.bool_)):
        return np.bool_(i)
    if isinstance(i, (list, tuple)):
        i = _array_of(i)
    if isinstance(i, str):
        raise TypeError(coded("BX-INDEX-DTYPE", f"arrays have no fields: an index is not a text, got {i!r}"))
    if not isinstance(i, (Array, np.ndarray, np.generic)):
        if hasattr(i, "__jax_array__"):
            i = i.__jax_array__()
        elif hasattr(i, "__index__") and not isinstance(i, float):
            return operator.index(i)
        elif isinstance(i, (float, complex)):
            i = np.asarray(i)
        else:
            raise IndexError(
                "an index consists of integers, slices, `...`, None, and arrays of integers or booleans;"
                f" got {i!r} of type {type(i)} at position {position}"
            )
    dtype = i.dtype
    if dtype == np.bool_ or dtypes.is_integer(dtype):
        return i
    if isinstance(i, np.ndarray) and i.size == 0 and dtype == np.float64:
        return i.astype(np.int32)  # np.asarray([])
    raise TypeError(
        coded(
            "BX-INDEX-DTYPE",
            f"an index is an integer or a mask, got {i!r} of dtype {dtype} at position {position}; convert it with"
            " x.astype(int)",
        )
    )


class _Reading(NamedTuple):
    """The plan of an index, and the roles of the values in it.

    Attributes:
      plan: the static part.
      starts: for each `WINDOW` and `POINT` axis ``(i, size, start, last)``: value number `i` into an axis of that size,
        or, where `i` is negative, a known start; `last` is the last one from which a window fits (None for others).
      arrays: which values are the index arrays.
      static: whether no start is an array.
      shape: the shape to which the array is reshaped first, or None.
    """

    plan: Plan
    starts: tuple[Any, ...]
    arrays: tuple[Any, ...]
    static: bool
    shape: tuple[Any, ...] | None


def read(shape: tuple[Any, ...], idx: Any, wrap: bool = True) -> tuple[Index, tuple[Any, ...] | None]:
    """Read an index into arrays of a shape; with `wrap`, known negative positions count from the end.

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
            raise TypeError(coded("BX-INDEX-LIST", _LISTS))
        idx = (idx,)
    forms: list[Any] = []
    values: list[Any] = []
    for position, i in enumerate(idx):
        kind = type(i)
        if kind is int:
            forms.append(_POSITION)
            values.append(i)
        elif kind is slice:
            forms.append(tuple([_slice_entry(v, i) for v in (i.start, i.stop, i.step)]))
        elif i is None or i is Ellipsis:
            forms.append(i)
        elif kind is Slice:
            _read_slice(i, position, forms, values)
        else:
            _read_value(i, position, forms, values)
    plan, starts_of, arrays_of, static, shape = _reading(shape, tuple(forms))
    starts: list[Any] = []
    inside = static
    for k, size, start, last in starts_of:
        if k >= 0:
            start = values[k]
            if type(start) is int and start < 0 and wrap:
                start += size
            if last is not None and static:
                start = dims.min_dim(dims.max_dim(start, 0), last)
            if type(start) is int and type(size) is int:
                inside = inside and 0 <= start < size
            else:
                inside = inside and _surely_inside(start, size)
        starts.append(start)
    return Index(plan, starts, [values[k] for k in arrays_of], static, inside), shape


# Forms of entries of an index: None, Ellipsis, the three bounds of a slice, and these.
_POSITION, _SCALAR = "a known position", "a scalar array"
_ARRAY, _MASK, _FLAG = "an index array", "a mask", "a bool"  # with the shapes of itself and of its index arrays
_WINDOW, _COMPUTED_WINDOW = "a window", "a window whose start is computed"  # with its size


def _read_slice(s: Slice, position: int, forms: list, values: list) -> None:
    """Add the form of a `Slice`, and its start."""
    start: list[Any] = []
    _read_value(s.start, position, start, values)
    if start not in ([_POSITION], [_SCALAR]):
        raise TypeError(f"a slice starts at an integer, got {s} at position {position}")
    if s.stride == 1:
        forms.append((_WINDOW if start == [_POSITION] else _COMPUTED_WINDOW, s.size))
    elif start == [_POSITION]:
        first = values.pop()
        stop = first + (s.size - 1) * s.stride + 1
        forms.append((first, None if first < 0 <= stop else stop, s.stride))
    else:
        raise NotImplementedError(f"a slice with a computed start has a stride of 1, got {s.stride}")


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
            raise NonConcreteBooleanIndexError(i)
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

    def __init__(self, shape: tuple[Any, ...], has_array: bool) -> None:
        self.shape = shape
        self.has_array = has_array
        self.axes: list[Any] = []
        self.layout: list[Any] = []
        self.starts: list[Any] = []
        self.arrays: list[Any] = []
        self.blocks: list[Any] = []
        self.values = 0
        self.position = 0
        # The position of the group of index arrays and points, and whether its members are separated.
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

    def slice(self, bounds: tuple[Any, ...]) -> None:
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
            self.starts.append((-1, size, start, None))

    def window(self, count: Any) -> None:
        axis = len(self.axes)
        size = self.shape[axis]
        if dims.is_constant_dim(size) and dims.is_constant_dim(count) and not 0 <= count <= size:
            raise IndexError(f"a slice of {count} positions does not fit into axis {axis} of size {size}")
        self.layout.append(axis)
        self.starts.append((self.value(), size, None, size - count))
        self.axes.append((WINDOW, count))

    def point(self) -> None:
        self.member()
        self.starts.append((self.value(), self.shape[len(self.axes)], None, None))
        self.axes.append((POINT,))

    def array(self, block: tuple[Any, ...]) -> None:
        self.axes.append((ARRAY, len(self.arrays)))
        self.arrays.append(self.value())
        self.blocks.append(block)

    def mask(self, shape: tuple[Any, ...], hits: tuple[Any, ...]) -> None:
        axis = len(self.axes)
        for k, n in enumerate(shape):
            if not dims.definitely_equal(self.shape[axis + k], n):
                raise IndexError(
                    coded(
                        "BX-MASK",
                        f"boolean index did not match shape of indexed array in index {axis + k}: got {shape},"
                        f" expected {list(self.shape[axis : axis + len(shape)])}",
                    )
                )
        for _ in shape:
            self.array(hits)

    def plan(self) -> Plan:
        block: tuple[Any, ...] = ()
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
    """The number of axes of the array that an entry takes."""
    if form is None or form is Ellipsis:
        return 0
    return len(form[1]) if form[0] in (_MASK, _FLAG) else 1


@functools.lru_cache(4096)
def _reading(shape: tuple, forms: tuple) -> _Reading:
    """The reading of entries of these forms for arrays of a shape."""
    missing = len(shape) - sum(map(_consumed, forms))
    if sum(f is Ellipsis for f in forms) > 1:
        raise IndexError(f"an index can only have a single ellipsis ('...'), got {sum(f is Ellipsis for f in forms)}")
    if missing < 0:
        raise IndexError(
            coded("BX-INDEX-COUNT", f"too many indices: {len(shape) - missing} for an array of rank {len(shape)}")
        )
    if Ellipsis not in forms:
        forms = (*forms, Ellipsis)
    flags = any(type(f) is tuple and f[0] == _FLAG for f in forms)
    if flags:
        shape = _with_axes_of_flags(shape, forms, missing)
    reader = _Reader(shape, any(type(f) is tuple and f[0] in (_ARRAY, _MASK, _FLAG) for f in forms))
    for form in forms:
        if form is Ellipsis:
            reader.ellipsis(missing)  # it separates, even if it covers no axis
        elif form is None:
            reader.layout.append(NEW)
        elif form is _POSITION or form is _SCALAR:
            reader.point()
        elif form[0] in (_WINDOW, _COMPUTED_WINDOW):
            reader.window(form[1])
        elif form[0] in (_ARRAY, _MASK, _FLAG):
            reader.member()
            if form[0] is _MASK:
                reader.mask(*form[1:])
            else:
                reader.array(form[-1])
        else:
            reader.slice(form)
        reader.position += 1
    static = all(f is not _SCALAR and not (type(f) is tuple and f[0] is _COMPUTED_WINDOW) for f in forms)
    return _Reading(reader.plan(), tuple(reader.starts), tuple(reader.arrays), static, shape if flags else None)


def _with_axes_of_flags(shape: tuple, forms: tuple, missing: int) -> tuple:
    """The shape with a new axis of length 1 for each scalar bool, which is then an index array for this axis."""
    new: list[Any] = []
    axis = 0
    for form in forms:
        if type(form) is tuple and form[0] is _FLAG:
            new.append(1)
            continue
        count = missing if form is Ellipsis else _consumed(form)
        new.extend(shape[axis : axis + count])
        axis += count
    return tuple(new)
