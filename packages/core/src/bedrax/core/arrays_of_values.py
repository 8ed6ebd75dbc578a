"""Values of libraries' types and the arrays that represent them: several for each value (`AbstractValue.lo_ty`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bedrax.core.avals import AbstractValue, struct_of


def arrays_of(types: Sequence[AbstractValue], values: Sequence[Any]) -> list[Any]:
    """The arrays that represent values. In place of a value, its type gives the types of the arrays."""
    return [x for aval, value in zip(types, values, strict=True) for x in _arrays_of_one(aval, value)]


def _arrays_of_one(aval: AbstractValue, value: Any) -> list[Any]:
    if aval.represented and isinstance(value, AbstractValue):
        return [struct_of(low) for low in aval.lo_ty()]
    return aval.lower_val(value)


def values_of(types: Sequence[AbstractValue], arrays: Sequence[Any]) -> list[Any]:
    """The values that arrays represent."""
    rest = iter(arrays)
    return [aval.raise_val(*[next(rest) for _ in aval.lo_ty()]) for aval in types]


def spread(types: Sequence[AbstractValue], facts: Sequence[Any]) -> list[Any]:
    """The fact of each array, such as its place, from the facts of the values."""
    return [fact for aval, fact in zip(types, facts, strict=True) for _ in aval.lo_ty()]


def gathered(types: Sequence[AbstractValue], facts: Sequence[Any]) -> list[Any]:
    """Return the fact of each value. For a value of a library's type it is the list of the facts of its arrays."""
    rest = iter(facts)
    return [[next(rest) for _ in aval.lo_ty()] if aval.represented else next(rest) for aval in types]


def low_types(types: Sequence[AbstractValue]) -> list[AbstractValue]:
    """The types of the arrays that represent values. Those of a library's type vary over all mapped axes."""
    return [
        low.update(vma=low.vma | aval.vma) if aval.represented and low.is_array else low
        for aval in types
        for low in aval.lo_ty()
    ]
