"""Errors as values: the possible failures of a program are data, and the number of the first one is an array.

An `Error` is a pytree. Its leaves are an integer (0 without an error, else the number of a `Failure`) and the
values in messages. The failures do not depend on the arguments; they are its `Spec`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from bedrax import lax, pytree
from bedrax.core import source
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.tracing import Tracer
from bedrax.lax.filling import zeros_of

CODE = ShapedArray((), np.dtype(np.int32))


class JaxException(Exception):
    """Base class of the exceptions that stand for failed checks. `Error.get_exception` returns one.

    Examples:

      >>> from jax.experimental import checkify
      >>> error, _ = checkify.checkify(lambda x: checkify.check(x > 0, "x is {}", x))(-1)
      >>> from bedrax.checkify import JaxException
      >>> isinstance(error.get_exception(), JaxException)
      True
    """


class FailedCheckError(JaxException):
    """The predicate of a `check` was false."""


class NaNError(JaxException):
    """An operation made a NaN."""


class DivisionByZeroError(JaxException):
    """A number was divided by zero."""


class OOBError(JaxException):
    """An index was out of bounds."""


class JaxRuntimeError(ValueError):
    """A check failed. `Error.throw` raises it, and `check` raises it where no `checkify` collects errors.

    Examples:

      >>> from jax.experimental import checkify

      >>> issubclass(checkify.JaxRuntimeError, ValueError)
      True
    """


ErrorCategory = type[JaxException]

user_checks: frozenset[ErrorCategory] = frozenset({FailedCheckError})
nan_checks: frozenset[ErrorCategory] = frozenset({NaNError})
index_checks: frozenset[ErrorCategory] = frozenset({OOBError})
div_checks: frozenset[ErrorCategory] = frozenset({DivisionByZeroError})
float_checks: frozenset[ErrorCategory] = nan_checks | div_checks
automatic_checks: frozenset[ErrorCategory] = float_checks | index_checks
all_checks: frozenset[ErrorCategory] = automatic_checks | user_checks


@dataclass(frozen=True)
class Failure:
    """A possible failure of a program.

    Attributes:
      kind: the class of the exception.
      text: a format string for the arguments that `tree` makes of the payload: positional and keyword arguments.
      types: shape and dtype of each array of the payload.
      where: the location in the user's code.
      lanes: the number of mapped axes; the last array of the payload has the index of the failing element.
    """

    kind: ErrorCategory
    text: str
    tree: Any
    types: tuple[Any, ...]
    where: tuple[Any, ...] | None = field(hash=False)
    lanes: int = 0

    def exception(self, payload: Sequence[Any], prefix: str = "", placed: bool = True) -> JaxException:
        """The exception with its message, which shows arrays unchanged, also of keys; `placed`: with the location."""
        payload, lane = (payload[:-1], np.asarray(payload[-1])) if self.lanes else (payload, ())
        args, kwargs = pytree.tree_unflatten(self.tree, payload)
        place = f" (at {source.describe(self.where)})" if self.where and placed else ""
        mapped = f", at mapped index {','.join(map(str, lane))}" if self.lanes else ""
        return self.kind(f"{prefix}{self.text.format(*args, **kwargs)}{mapped}{place}")


class Spec(NamedTuple):
    """The possible failures, and the types of payloads. Failures with equal types share one slot."""

    failures: tuple[Failure, ...] = ()
    slots: tuple[tuple[Any, ...], ...] = ()

    def types(self) -> list[ShapedArray]:
        """The types of an error's leaves; none without possible failures."""
        return [CODE, *(ShapedArray(*t) for slot in self.slots for t in slot)] if self.failures else []

    def no_error(self) -> list[Any]:
        """The leaves without an error."""
        return no_error(self.types())

    def split(self, leaves: Sequence[Any]) -> dict[tuple[Any, ...], list[Any]]:
        """The arrays of each slot."""
        rest = iter(leaves[1:])
        return {slot: [next(rest) for _ in slot] for slot in self.slots}


def no_error(types: Sequence[ShapedArray]) -> list[Any]:
    """The leaves of an error of these types, while nothing has failed."""
    return [zeros_of(t) for t in types]


class Error:
    """The error of a checked function: a pytree that can be returned from `jit`, mapped, and carried by loops.

    Examples:

      >>> from jax.experimental import checkify

      >>> def f(x):
      ...     checkify.check(x > 0, "x is {x}", x=x)
      ...     return jnp.log(x)
      ...
      >>> error, value = jax.jit(checkify.checkify(f))(-1.)
      >>> isinstance(error, checkify.Error)
      True
      >>> error.get().startswith("x is -1.0")
      True
    """

    __slots__ = ("leaves", "spec")

    def __init__(self, spec: Spec = Spec(), leaves: Sequence[Any] = ()) -> None:  # noqa: B008 - it is a constant
        self.spec: Spec = spec
        self.leaves: list[Any] = list(leaves)

    def get_exception(self) -> JaxException | None:
        """The exception of the first failure, or None. For a mapped error: one exception for all elements."""
        return self._exception(placed=True)

    def _exception(self, placed: bool) -> JaxException | None:
        if not self.spec.failures:
            return None
        codes, found = np.asarray(self.leaves[0]), []
        for lane in zip(*np.nonzero(codes), strict=True) if codes.ndim else [()] * bool(codes):
            failure = self.spec.failures[codes[lane] - 1]
            payload = self.spec.split([element(x, lane) for x in self.leaves])[failure.types]
            prefix = f"at mapped index {','.join(map(str, lane))}: " if lane else ""
            found.append(failure.exception(payload, prefix, placed))
        return type(found[0])("\n".join(map(str, found))) if found else None

    def get(self) -> str | None:
        """The message of the first failure, or None."""
        error = self.get_exception()
        return None if error is None else str(error)

    def throw(self) -> None:
        """Raise the error.

        Raises:
          JaxRuntimeError: there is an error.
        """
        message = self.get()
        if message is not None:
            raise JaxRuntimeError(message)

    def tree_flatten(self) -> tuple[Any, ...]:
        """(leaves, spec)."""
        return tuple(self.leaves), self.spec

    @classmethod
    def tree_unflatten(cls, metadata: Spec, data: Sequence[Any]) -> Error:
        """The error of a spec and leaves."""
        return cls(metadata, data)

    def __repr__(self) -> str:
        return f"Error({self.leaves[0] if self.leaves else 'nothing can fail'})"

    def __str__(self) -> str:
        known = not any(isinstance(x, Tracer) for x in self.leaves)
        return f"Error({self._exception(placed=False)})" if known else repr(self)


pytree.register_pytree_node_class(Error)
init_error: Final = Error()


def element(x: Any, index: tuple[int, ...]) -> Any:
    """One leaf of an error for a message: an array; keys stay unchanged (they have no values in NumPy)."""
    if not isinstance(aval_of(x).dtype, np.dtype):
        return x[index] if index else x
    return lax.asarray(np.asarray(x)[index])


def one_failure(failure: Failure, failed: Any, payload: Sequence[Any]) -> Error:
    """The error of a failure if `failed` (a boolean scalar) is true."""
    code = lax.convert_element_type(failed, CODE.dtype)
    return Error(Spec((failure,), (failure.types,)), [code, *payload])


def types_of(payload: Sequence[Any]) -> tuple[Any, ...]:
    """The value of `Failure.types` for a payload."""
    return tuple([(a.shape, a.dtype) for a in map(aval_of, payload)])


def first_of(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """The leaves of the earlier of two errors of one spec."""
    none_yet = lax.eq(old[0], CODE.dtype.type(0))
    return [lax.select_n(none_yet, a, b) for a, b in zip(old, new, strict=True)]


class Collector:
    """Joins errors in the order in which they happen: the first one is kept."""

    def __init__(self) -> None:
        self.numbers: dict[Failure, int] = {}
        self.slots: dict[tuple[Any, ...], list[Any]] = {}
        self.code: Any = None

    def add(self, error: Error) -> None:
        """Add an error that happens after the previous ones."""
        if not error.spec.failures:
            return
        numbers = [self.numbers.setdefault(f, len(self.numbers) + 1) for f in error.spec.failures]
        code = error.leaves[0]
        if numbers != list(range(1, len(numbers) + 1)):
            code = lax.dynamic_index_in_dim(np.array([0, *numbers], np.int32), code, keepdims=False)
        added = error.spec.split(error.leaves)
        if self.code is None:
            self.code = code
            self.slots = added
            return
        none_yet = lax.eq(self.code, CODE.dtype.type(0))
        self.code = lax.select_n(none_yet, self.code, code)
        for slot, new in added.items():
            old = self.slots.get(slot, new)  # a new slot has no earlier error
            self.slots[slot] = [a if a is b else lax.select_n(none_yet, a, b) for a, b in zip(old, new)]

    def error(self) -> Error:
        """The collected error."""
        if self.code is None:
            return init_error
        spec = Spec(tuple(self.numbers), tuple(self.slots))
        return Error(spec, [self.code, *(x for slot in self.slots.values() for x in slot)])


def aligned(error: Error, spec: Spec) -> list[Any]:
    """The leaves of an error in the form of a spec that has all its failures."""
    collector = Collector()
    collector.add(Error(spec, spec.no_error()))
    collector.add(error)
    return collector.error().leaves


def joined(specs: Sequence[Spec]) -> Spec:
    """The spec of the possible failures of several programs."""
    failures = dict.fromkeys(f for spec in specs for f in spec.failures)
    return Spec(tuple(failures), tuple(dict.fromkeys(s for spec in specs for s in spec.slots)))


__all__ = [
    "DivisionByZeroError",
    "Error",
    "ErrorCategory",
    "FailedCheckError",
    "JaxException",
    "JaxRuntimeError",
    "NaNError",
    "OOBError",
    "all_checks",
    "automatic_checks",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]
