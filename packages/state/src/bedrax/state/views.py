"""Parts of references: indices and other views as data, and their effect on the value of a reference.

A view is a tuple of transforms, each static and hashable. Computed positions and index arrays are
separate operands, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_functions
from bedrax.numpy import indexing, methods, updates
from bedrax.state.types import AbstractRef, Ref


class Indexed(NamedTuple):
    """``x[idx]``.

    Attributes:
      plan: the treatment of each axis.
      starts: for each start of the plan an int, or None for an operand.
      arrays: the number of index arrays among the following operands.
      inside: whether all starts are known to be in bounds.
      shape: the shape to which the array is reshaped first, or None.
    """

    plan: indexing.Plan
    starts: tuple[Any, ...]
    arrays: int
    inside: bool
    shape: tuple[Any, ...] | None

    @property
    def count(self) -> Any:
        return self.starts.count(None) + self.arrays

    @property
    def result_shape(self) -> Any:
        return self.plan.result_shape

    def text(self, operands: Sequence[str]) -> str:
        rest = iter(operands)
        axes: list[Any] = []
        starts = iter([next(rest) if s is None else s for s in self.starts])
        arrays = list(rest)
        for kind in self.plan.axes:
            what = kind[0]
            if what == indexing.FULL:
                axes.append(":")
            elif what == indexing.RANGE:
                axes.append(f"{kind[1]}:{kind[1] + kind[2] * kind[3]}:{kind[3]}")
            elif what == indexing.ARRAY:
                axes.append(arrays[kind[1]])
            else:
                start = next(starts)
                end = start + kind[1] if what == indexing.WINDOW and isinstance(start, int) else None
                axes.append(str(start) if what == indexing.POINT else f"{start}:{end or f'{start}+{kind[1]}'}")
        return f"[{','.join(axes)}]"

    def _index(self, operands: Sequence[Any]) -> indexing.Index:
        rest = iter(operands)
        starts = [next(rest) if s is None else s for s in self.starts]
        return indexing.Index(self.plan, starts, list(rest), None not in self.starts, self.inside)

    def read(self, x: Any, operands: Sequence[Any]) -> Any:
        return indexing.get(x if self.shape is None else lax.reshape(x, self.shape), self._index(operands))

    def write(self, x: Any, operands: Sequence[Any], value: Any, how: str) -> Any:
        shape = x.shape
        x = x if self.shape is None else lax.reshape(x, self.shape)
        return lax.reshape(updates.update_at(x, self._index(operands), value, how), shape)


class Reshaped(NamedTuple):
    """``x.reshape(shape)``."""

    shape: tuple[Any, ...]
    count = 0

    @property
    def result_shape(self) -> Any:
        return self.shape

    def read(self, x: Any, operands: Sequence[Any]) -> Any:
        return lax.reshape(x, self.shape)

    def write(self, x: Any, operands: Sequence[Any], value: Any, how: str) -> Any:
        if how == "add":
            value = lax.add(lax.reshape(x, self.shape), value)
        return lax.reshape(value, x.shape)


class Transposed(NamedTuple):
    """``x.transpose(order)``; `shape` is that of the result."""

    order: tuple[Any, ...]
    shape: tuple[Any, ...]
    count = 0

    @property
    def result_shape(self) -> Any:
        return self.shape

    def read(self, x: Any, operands: Sequence[Any]) -> Any:
        return lax.transpose(x, self.order)

    def write(self, x: Any, operands: Sequence[Any], value: Any, how: str) -> Any:
        value = lax.transpose(value, tuple(np.argsort(self.order)))
        return lax.add(x, value) if how == "add" else value


class Bitcast(NamedTuple):
    """``x.view(dtype)``; `shape` is that of the result."""

    dtype: np.dtype
    shape: tuple[Any, ...]
    count = 0

    @property
    def result_shape(self) -> Any:
        return self.shape

    def read(self, x: Any, operands: Sequence[Any]) -> Any:
        return methods.view(x, self.dtype)

    def write(self, x: Any, operands: Sequence[Any], value: Any, how: str) -> Any:
        if how == "add":
            value = lax.add(self.read(x, ()), value)
        return methods.view(value, x.dtype)


def index(shape: tuple[Any, ...], idx: Any) -> tuple[Indexed | None, list[Any]]:
    """An index into arrays of a shape as a transform (None: the whole array) and its operands."""
    if idx is Ellipsis or idx is None or (type(idx) is tuple and not idx):
        return None, []
    found, first = indexing.read(shape, idx)
    plan = found.plan
    for entry in idx if isinstance(idx, tuple) else (idx,):
        number = isinstance(entry, (int, np.integer)) and not isinstance(entry, bool)
        if number and not found.inside and found.static:
            raise IndexError(f"the index {idx} is out of bounds for a reference of shape {shape}")
    if first is None and all(kind == (indexing.FULL,) for kind in plan.axes) and plan.result_shape == shape:
        return None, []
    starts = tuple([s if isinstance(s, int) else None for s in found.starts])
    operands = [_as_array(s) for s in (*found.starts, *found.arrays) if not isinstance(s, int)]
    return Indexed(plan, starts, len(found.arrays), found.inside, first), operands


def _as_array(x: Any) -> Any:
    return x if isinstance(x, Array) else lax.asarray(x)


def part_aval(aval: ShapedArray, transforms: Sequence[Any]) -> ShapedArray:
    """The type of a part of an array."""
    if not transforms:
        return aval
    dtype = aval.dtype
    for t in transforms:
        dtype = getattr(t, "dtype", dtype)
    weak = aval.weak_type and dtype == aval.dtype
    return ShapedArray(transforms[-1].result_shape, dtype, weak_type=weak, vma=aval.vma)


def _split(transforms: Sequence, operands: Sequence[Any]) -> list:
    parts, at = [], 0
    for t in transforms:
        parts.append(operands[at : at + t.count])
        at += t.count
    return parts


def text(ref: str, transforms: Sequence[Any], operands: Sequence[str]) -> str:
    """A part of a reference in the text of a program, e.g. ``a[0,:]``."""
    if not transforms:
        return f"{ref}[...]"
    for t, own in zip(transforms, _split(transforms, operands), strict=True):
        ref += t.text(own) if isinstance(t, Indexed) else f".{type(t).__name__.lower()}{t.shape}"
    return ref


def read(x: Any, transforms: Sequence[Any], operands: Sequence[Any]) -> Any:
    """The part of `x`."""
    for t, own in zip(transforms, _split(transforms, operands), strict=True):
        x = t.read(x, own)
    return x


def write(x: Any, transforms: Sequence[Any], operands: Sequence[Any], value: Any, how: str) -> Any:
    """`x` with `value` written to the part ("set"), or added to it ("add")."""
    if not transforms:
        return value if how == "set" else lax.add(x, value)
    own = _split(transforms, operands)
    outer = [x]
    for t, given in zip(transforms[:-1], own[:-1], strict=True):
        outer.append(t.read(outer[-1], given))
    for t, given, whole in zip(reversed(transforms), reversed(own), reversed(outer), strict=True):
        value, how = t.write(whole, given, value, how), "set"
    return value


class TransformedRef(Ref):
    """A view of a part of a reference: ``ref.at[idx]``. It can be read and written like a reference.

    Examples:

      >>> from jax.experimental import hijax

      >>> table = jax.new_ref(jnp.arange(6).reshape(2, 3))
      >>> row = table.at[1]
      >>> isinstance(row, hijax.TransformedRef), row.shape
      (True, (3,))
      >>> row[0] = 30
      >>> table[...]
      Array([[ 0,  1,  2],
             [30,  4,  5]], dtype=int32)
    """

    __slots__ = ("operands", "ref", "transforms")

    def __init__(self, ref: Ref, transforms: tuple[Any, ...] = (), operands: tuple[Any, ...] = ()) -> None:
        self.ref: Ref = ref
        self.transforms: tuple[Any, ...] = tuple(transforms)
        self.operands: tuple[Any, ...] = tuple(operands)

    @property
    def aval(self) -> AbstractRef:
        return self.ref.aval.update(inner_aval=part_aval(self.ref.aval.inner_aval, self.transforms))

    T = property(lambda self: self.transpose())

    def _with(self, transform: Any, operands: Any = ()) -> TransformedRef:
        if transform is None:
            return self
        return TransformedRef(self.ref, (*self.transforms, transform), (*self.operands, *operands))

    def reshape(self, *shape: Any) -> TransformedRef:
        """The same elements in another shape, given as one sequence or as several ints."""
        new = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        if -1 in new:
            rest = int(np.prod([n for n in new if n != -1]))
            new = tuple(self.size // rest if n == -1 else n for n in new)
        if int(np.prod(new)) != self.size:
            raise ValueError(f"a part of shape {self.shape} cannot be viewed in shape {new}: sizes differ")
        return self._with(Reshaped(new))

    def transpose(self, *order: Any) -> TransformedRef:
        """The axes in another order; default: reversed."""
        axes = tuple(order[0]) if len(order) == 1 and not isinstance(order[0], int) else order
        axes = axes or tuple(reversed(range(self.ndim)))
        return self._with(Transposed(axes, tuple(self.shape[i] for i in axes)))

    def bitcast(self, dtype: Any) -> TransformedRef:
        """The same bytes as elements of another dtype; the last axis changes its length if the sizes differ."""
        dtype = dtypes.as_dtype(dtype)
        ratio = self.dtype.itemsize / dtype.itemsize
        shape = self.shape if ratio == 1 else (*self.shape[:-1], int(self.shape[-1] * ratio))
        return self._with(Bitcast(dtype, shape))

    def __repr__(self) -> str:
        return f"TransformedRef({self.aval.short()} of {self.ref.aval.short()})"


aval_functions[TransformedRef] = lambda view: view.aval
