"""Objects of libraries' own classes (`jax.experimental.hijax`) as arguments of traced functions.

A function is traced for the object itself, not for a type. It may use and change objects that are not
arguments, too. Their new contents are further results of its program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from bedrax.core import array


class ObjectKind(NamedTuple):
    """The functions of a library for a class of its objects.

    Attributes:
      typeof: ``object -> type``.
      parts: ``object -> key``, hashable: different objects have different keys.
    """

    typeof: Callable[[Any], Any]
    parts: Callable[[Any], tuple[Any, ...]]


kinds: dict[type, ObjectKind] = {}


class MappingSpec:
    """The mapping of a value of a library's type, instead of the number of an axis. Libraries derive from it.

    An instance is an entry of ``in_axes`` and ``out_axes`` of `jax.vmap`. The methods ``dec_rank(size, spec)`` and
    ``inc_rank(size, spec)`` of the type return the type of an element and of a batch.

    Examples:

      >>> from jax.experimental import hijax

      >>> class Both(hijax.MappingSpec):
      ...     pass
      ...
      >>> isinstance(Both(), hijax.MappingSpec)
      True
    """


def array_form(x: Any) -> Any:
    """The array of a value of a library's type that has one (`__jax_array__`), where only arrays fit; else the value."""
    if type(x) in array.no_arrays and hasattr(x, "__jax_array__"):
        return x.__jax_array__()
    return x


class Held(NamedTuple):
    """An object, in place of the type of an argument: a function is traced for this object."""

    value: Any
    parts: tuple[Any, ...]

    @classmethod
    def of(cls, value: Any) -> Held:
        return cls(value, kinds[type(value)].parts(value))

    def __eq__(self, other: object) -> bool:
        return type(other) is Held and self.value is other.value and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts[1:])


class Changes(Protocol):
    """The objects from outside that a traced function changed."""

    def finish(self, values: Sequence[Any]) -> None:
        """Write the new contents to the objects."""


class UsedObjects(Protocol):
    """The objects that a function has used during its trace: the attribute `objects` of the trace."""

    def further_results(self) -> tuple[list[Any], Changes | None, list[Held]]:
        """Undo the changes of objects from outside, and return the new contents.

        Returns:
          (their new contents, the changes, the objects from outside as they were).
        """

    def refuse_changes(self) -> None:
        """Raise ValueError if there are changes that no caller has handled."""


def with_held(flat: Callable[..., Any], types: Sequence[Any]) -> tuple[Callable[..., Any], Sequence[Any]]:
    """Return a flat function of the arguments that are not `Held`, and their types. `Held` values are constants."""
    if not any(type(t) is Held for t in types):
        return flat, types

    def of_arrays(*arrays):
        rest = iter(arrays)
        return flat(*(t.value if type(t) is Held else next(rest) for t in types))

    return of_arrays, [t for t in types if type(t) is not Held]
