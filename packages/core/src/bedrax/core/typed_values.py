"""Tracers of values that are not arrays: the type of such a value gives it its attributes and operators.

A library's type is the only one that knows what its values can do. An attribute of a traced value is that of its type; an
`aval_method` or `aval_property` is called with the value. For ``x + y``, the type has the method ``_add(x, y)``, for
``x[i]`` the method ``_getitem(x, i)``, and so on.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

from bedrax.core import array, avals
from bedrax.core.tracing import Tracer

T = TypeVar("T", bound=type[Tracer])


def typed(kind: T) -> T:
    """Return the subclass of a class of tracers for values that are not arrays. The two have one name."""
    made: Any = type(kind)(kind.__name__, (TypedValue, kind), {"__slots__": (), "__module__": kind.__module__})
    made.__qualname__ = kind.__qualname__
    array.no_arrays.add(made)
    avals.aval_functions[made] = operator.attrgetter("aval")
    return made


def is_typed(x: Any) -> bool:
    """Whether a value is neither an array nor a reference, so that its tracer is of such a class."""
    if type(x) not in array.no_arrays:
        return False
    aval = avals.aval_of(x)
    return not (aval.is_array or aval.mutable)


class TypedValue(Tracer):
    """Base class of these tracers."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name not in _OF_TYPES and hasattr(type(self), name):  # such as `aval` of a tracer that is not yet filled
            return super().__getattr__(name)
        aval = self.aval
        try:
            found = getattr(aval, name)
        except AttributeError:
            raise AttributeError(
                f"a value of type {aval} in a traced function has no attribute {name!r}: the class"
                f" {type(aval).__name__} of its type defines none. Apply an operation, of a class that derives from HiPrim,"
                " whose `expand` reads the attribute"
            ) from None
        return found.of_value(self) if hasattr(found, "of_value") else found


class _OfType:
    """An attribute of arrays, which these values have only if their types define it: leads to `__getattr__`."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        raise AttributeError  # for the class, too: `hasattr(kind, "weak_type")` tells classes of arrays


def _operator(name: str) -> Callable[..., Any]:
    """The method for an operator: the type's method of this name, with one underscore in front."""
    own = f"_{name.strip('_')}"
    inherited = getattr(Tracer, name) if name in _CONVERSIONS else None

    def method(self, *args):
        rule = getattr(self.aval, own, None)
        if rule is not None:
            return rule(self, *args)
        if inherited is not None:
            return inherited(self)
        raise AttributeError(
            f"a value of type {self.aval} in a traced function has no operator {name}: its type, of the class"
            f" {type(self.aval).__name__}, must define {own!r}"
        )

    method.__name__ = name
    return method


_CONVERSIONS = ("__bool__", "__int__", "__float__", "__complex__", "__index__")  # errors explain how to do without
_OPERATORS = (*array.OPERATORS, *_CONVERSIONS, "__len__")
_METHODS = tuple(name for name in array.NUMPY_METHODS if name.startswith("__") and "array" not in name)
_OF_TYPES = frozenset(
    (
        *(name for name in array.NUMPY_METHODS if name not in _METHODS),
        *("shape", "dtype", "weak_type", "ndim", "size", "itemsize", "nbytes", "item", "tolist"),
    )
)
for _name in (*_OPERATORS, *_METHODS):
    setattr(TypedValue, _name, _operator(_name))
for _name in _OF_TYPES:
    setattr(TypedValue, _name, _OfType())
