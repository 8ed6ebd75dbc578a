"""Types of a library's own (Flax's variables declare some). Only their declaration is supported.

A class may derive from these and be registered; tracing a program over values of such a
type raises, because no array type stands behind them here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bedrax.autodiff.tables import Zero, instantiate, is_undefined
from bedrax.core.avals import AbstractValue, ShapedArray
from bedrax.core.effects import control_flow_allowed_effects
from bedrax.core.tracing import Primitive
from bedrax.extend.refs import AbstractRef


class HiType(AbstractValue):
    """A type with a representation in arrays, declared by a library."""


class MutableHiType(HiType):
    """A `HiType` of mutable values."""


class HiPspec:
    """How values of a `HiType` are spread over a mesh."""


class HiPrimitive(Primitive):
    """An operation on values of a `HiType`."""


class VJPHiPrimitive:
    """An operation with a backward rule. Applying one raises NotImplementedError."""

    def __call__(self, *args):
        raise NotImplementedError(
            f"{type(self).__name__}: primitives over a library's own types are not supported"
        )


class TransformedRef:
    """A view of a reference. None exists, since references are not supported."""


def aval_property(fget: Callable) -> property:
    """A property that tracers of the type get."""
    return property(fget)


def aval_method(fun: Callable) -> Callable:
    """A method that tracers of the type get."""
    return fun


hitypes: dict[type, Callable[[Any], HiType]] = {}


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], HiType]) -> None:
    """Declare the type of a class's values. (Programs over them are not supported.)"""
    hitypes[val_cls] = typeof_fn


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent as a value."""
    return instantiate(tangent)


is_undefined_primal = is_undefined

__all__ = [
    "AbstractRef", "AbstractValue", "HiPrimitive", "HiPspec", "HiType", "MutableHiType", "ShapedArray", "TransformedRef",
    "VJPHiPrimitive", "Zero", "aval_method", "aval_property", "control_flow_allowed_effects", "instantiate_zeros",
    "is_undefined_primal", "register_hitype",
]  # fmt: skip
