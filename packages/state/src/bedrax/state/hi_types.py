"""Types of a library's own (`jax.experimental.hijax`): classes whose values are kept in arrays.

Such a value is no part of a program. It is a Python object wherever it goes, and the operations of its library are carried
out by what each says of lower types (`HiPrimitive.to_lojax`). What a value of a mutable type holds is kept in references,
so that it can be written to in every function that uses it. `jit` holds such an argument as the object that it is.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bedrax.core import avals
from bedrax.core.avals import AbstractValue, ShapedArray, library_types
from bedrax.core.staging import StagingTrace
from bedrax.core.tracing import Primitive, current
from bedrax.state.operations import new_ref
from bedrax.state.types import Cell, Ref, RefTracer

__all__ = [
    "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiType", "MutableHiType", "aval_method", "aval_property", "cur_qdd",
    "register_hitype",
]  # fmt: skip


class HiType(AbstractValue):
    """A type whose values are represented by arrays.

    A library derives from it, with ``==`` and ``hash``, and says how: ``lo_ty()``, the types of the arrays,
    ``lower_val(value)``, the arrays, and ``raise_val(*arrays)``, the value. `register_hitype` says which values are of the
    type, and classes derived from `HiPrimitive` what can be done with them.
    """

    is_high = True
    has_qdd = False


class MutableHiType(HiType):
    """A type of values that can be written to.

    How a value looks at the moment is its *quasi-dynamic data* (``value.cur_qdd()``), for which a library says `read_loval`
    ``(data, value) -> arrays``, and `update_from_loval` ``(data, value, *arrays)``.
    """

    has_qdd = True


class aval_method(NamedTuple):
    """An attribute of a type by which its values in programs (tracers) have a method.

    Attributes:
      fun: ``(value, *args, **kwargs) -> result``. What every array has under that name is found before it.
    """

    fun: Callable[..., Any]

    def of_value(self, value: Any) -> Callable[..., Any]:
        return functools.partial(self.fun, value)


class aval_property(NamedTuple):
    """An attribute of a type by which its values in programs (tracers) have a property.

    Attributes:
      fget: ``value -> what the attribute is``. What every array has under that name is found before it.
    """

    fget: Callable[..., Any]

    def of_value(self, value: Any) -> Any:
        return self.fget(value)


@dataclass(frozen=True)
class AvalQDD:
    """A type of values that can be written to, and how one of them looks; a key that can be compared and hashed, if both can."""

    aval: AbstractValue
    qdd: Any


@dataclass(frozen=True)
class AvalMutableQDD:
    """A type of values that can be written to, and an object that says, at any time, how one of them looks."""

    aval: AbstractValue
    mutable_qdd: Any


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], AbstractValue]) -> None:
    """Declare the type of a class's values.

    Args:
      val_cls: the class.
      typeof_fn: ``value -> type``.
    """
    library_types[val_cls] = avals.LibraryType(typeof_fn, _parts)


class _Raw(threading.local):
    on: bool = False  # whether operations see references where values are kept in them
    opened: frozenset[Any] = frozenset()  # the ids of values that an operation is being carried out on


_raw = _Raw()


def _unwrapped(aval: Any) -> Any:
    return aval.inner_aval if isinstance(getattr(aval, "inner_aval", None), ShapedArray) else aval


def cur_qdd(x: Any) -> Any:
    """How a value of a mutable type looks at the moment."""
    data = x.cur_qdd()
    leaves = getattr(data, "leaf_avals", None)
    if leaves is None or not any(aval.mutable for aval in leaves):
        return data
    fields = {name: getattr(data, name) for name in data.__dataclass_fields__}
    return type(data)(**{**fields, "leaf_avals": tuple(map(_unwrapped, leaves))})


def _is_mutable(x: Any) -> bool:
    found = library_types.get(type(x))
    return found is not None and bool(found.typeof(x).has_qdd)


def _held(x: Any) -> list:
    """What keeps a value: references, and what needs none."""
    saved, _raw.on = _raw.on, True
    try:
        return list(library_types[type(x)].typeof(x).read_loval(cur_qdd(x), x))
    finally:
        _raw.on = saved


def _parts(x: Any) -> tuple:
    """What tells a value that `jit` has seen from another one."""
    return (x, cur_qdd(x), *map(id, _held(x))) if _is_mutable(x) else (x,)


def _hold(x: Any, parts: Sequence[Any], data: Any = None) -> None:
    saved, _raw.on = _raw.on, True
    try:
        library_types[type(x)].typeof(x).update_from_loval(cur_qdd(x) if data is None else data, x, *parts)
    finally:
        _raw.on = saved


def _keep(value: Any) -> Any:
    """A part of a value in a reference, if it is an array."""
    if isinstance(value, Ref) or not avals.is_valid_value(value) or not avals.aval_of(value).is_array:
        return value
    return new_ref(value)


class _Seen(NamedTuple):
    """The values that a function has used while it was recorded.

    Attributes:
      made: those that it made.
      foreign: those from outside, as they were: (value, data, parts, Held).
    """

    made: list[Any]
    foreign: list[Any]


_seen: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()  # by trace


def _seen_by(trace: StagingTrace) -> _Seen:
    found = _seen.get(trace)
    if found is None:
        found = _seen[trace] = _Seen([], [])
    return found


def _note(x: Any) -> None:
    """A value is used: the functions that are being recorded, from the inside out, to which it is foreign keep that in mind."""
    trace = current.trace
    while trace is not None:
        if isinstance(trace, StagingTrace):
            seen = _seen_by(trace)
            if any(made is x for made in seen.made):
                return
            if not any(known[0] is x for known in seen.foreign):
                seen.foreign.append((x, cur_qdd(x), _held(x), avals.Held.of(x)))
        trace = trace.parent


def _changed(trace: StagingTrace) -> list:
    """Of the values from outside, those that hold something of another type: (value, data before, parts before)."""
    found = _seen.get(trace)
    if found is None:
        return []
    return [(x, data, old) for x, data, old, _ in found.foreign if list(map(id, _held(x))) != list(map(id, old))]


def _ending(flat: Callable) -> Callable:
    """See `Library.ending`."""

    def ended(*args):
        outs, aux = flat(*args)
        trace, further, changes = current.trace, [], []
        for x, data, old in _changed(trace):
            now = [part[...] if isinstance(part, Ref) else part for part in _held(x)]
            arrays = [isinstance(part, Ref) for part in _held(x)]
            changes.append((x, cur_qdd(x), [None if a else part for part, a in zip(now, arrays)], arrays))
            further += [part for part, a in zip(now, arrays) if a]
            _hold(x, old, data)
        found = _seen.get(trace)
        return [*outs, *further], (aux, changes, [] if found is None else [known[3] for known in found.foreign])

    return ended


def _finish(changes: Sequence, values: Sequence[Any]) -> None:
    """See `Library.finish`."""
    rest = iter(values)
    for x, data, parts, arrays in changes:
        _note(x)
        _hold(x, [_keep(next(rest)) if a else part for part, a in zip(parts, arrays)], data)


def _refuse_changes(trace: StagingTrace) -> None:
    """See `Library.refuse_changes`."""
    for x, data, old in _changed(trace):
        _hold(x, old, data)
        raise ValueError(
            f"a value of type {library_types[type(x)].typeof(x)} from outside of a loop or a branch is given a state of another"
            " structure, shape or dtype in it; there it can be given values of the types that it holds"
        )


avals.library = avals.Library(_ending, _finish, _refuse_changes)


class _Opened:
    """A value of a mutable type for the time of an operation, which sees in it what its references hold."""

    def __init__(self, x: Any) -> None:
        self.x, self.data, self.kept = x, cur_qdd(x), _held(x)
        self.seen = [part[...] if isinstance(part, Ref) else part for part in self.kept]

    def open(self) -> None:
        if any(a is not b for a, b in zip(self.seen, self.kept)):
            _hold(self.x, self.seen, self.data)

    def restore(self) -> None:
        """As if there had been no operation."""
        _hold(self.x, self.kept, self.data)

    def close(self) -> None:
        """What the operation has put in place of what it saw is written to the references."""
        new = _held(self.x)
        same = [i < len(self.seen) and part is self.seen[i] for i, part in enumerate(new)]
        _write(self.x, self.kept, [self.kept[i] if s else part for i, (part, s) in enumerate(zip(new, same))])


class HiPrimitive(Primitive):
    """An operation on values of a library's types.

    A library derives from it and says what the operation does to values, ``to_lojax(*args, **params)``. That is
    differentiated, batched and compiled as what it is composed of; the operation's own rules are not needed.
    What is written to a value of a mutable type in it is written to what keeps that value; if it raises, nothing is.
    """

    __slots__ = ("__dict__",)
    multiple_results = False  # a class says otherwise

    def __init__(self, name: str) -> None:
        self.name = name
        self.family = ""

    def bind(self, *args: Any, **params: Any) -> Any:
        """Carry the operation out."""
        if _raw.on:
            return self.to_lojax(*args, **params)
        values = {id(x): x for x in args if type(x) in library_types and _is_mutable(x) and id(x) not in _raw.opened}
        for x in values.values():
            _note(x)
        before = {i: _Opened(x) for i, x in values.items()}
        saved, _raw.opened = _raw.opened, _raw.opened | values.keys()
        try:
            for opened in before.values():
                opened.open()
            out = self.to_lojax(*args, **params)
        except BaseException:
            for opened in before.values():
                opened.restore()
            raise
        finally:
            _raw.opened = saved
        for opened in before.values():
            opened.close()
        kept = {id(part) for opened in before.values() for part in opened.kept if isinstance(part, Ref)}
        read = lambda part: part[...] if id(part) in kept else _new(part)
        return [read(part) for part in out] if self.multiple_results else read(out)


def _new(x: Any) -> Any:
    """A result: what a new value of a mutable type holds goes to references."""
    if type(x) in library_types and _is_mutable(x):
        _hold(x, [_keep(part) for part in _held(x)])
        if isinstance(current.trace, StagingTrace):
            _seen_by(current.trace).made.append(x)
    return x


def _write(x: Any, old: Sequence[Any], new: Sequence[Any]) -> None:
    """Of a value that an operation wrote to: its references hold what it holds now."""
    if all(a is b for a, b in zip(old, new)) and len(old) == len(new):
        _hold(x, old)
        return
    new = [part[...] if isinstance(part, Ref) and not any(part is a for a in old) else part for part in new]
    fits = len(old) == len(new) and all(map(_fits, old, new))
    if not fits:
        _hold(x, [_keep(part) for part in new])
        return
    for place, part in zip(old, new, strict=True):
        if isinstance(place, (Cell, RefTracer)) and part is not place:
            place[...] = part
    _hold(x, old)


def _fits(place: Any, part: Any) -> bool:
    if not isinstance(place, Ref) or part is place:
        return place is part
    aval = avals.aval_of(part)
    return aval.is_array and (aval.shape, aval.dtype) == (place.shape, place.dtype)
