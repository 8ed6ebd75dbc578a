"""Hints for the compiler, which it keeps with operations as it finds them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from bedrax.core import config
from bedrax.core.tracing import current
from bedrax.lax import hint

__all__ = ["set_xla_metadata"]

# A program that is traced under hints is another one, so they are part of every key.
_in_force = config.flag("hints_in_force", (), "what `set_xla_metadata` says in this thread", kind=tuple, keyed=True)


class _Hinted:
    """Operations that are traced inside get hints: a context manager, and a decorator."""

    def __init__(self, pairs: tuple[tuple[str, str], ...]):
        self.pairs = pairs

    def __enter__(self) -> None:
        current.names = (*current.names, self.pairs)
        _in_force.set_local((*_in_force.value, *self.pairs))

    def __exit__(self, *_: Any) -> None:
        current.names = current.names[:-1]
        _in_force.set_local(_in_force.value[: len(_in_force.value) - len(self.pairs)] or config.UNSET)

    def __call__(self, fun: Callable) -> Callable:
        return _Under(self, fun)


class _Under:
    """A function that is called with hints in force, and whose methods (`lower`, `trace`) are."""

    def __init__(self, hints: _Hinted, fun: Callable):
        self._hints, self._fun = hints, fun
        functools.update_wrapper(self, fun, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._hints:
            return self._fun(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._fun, name)
        return _Under(self._hints, value) if callable(value) else value


def set_xla_metadata(x: Any = None, /, **metadata: Any) -> Any:
    """Hand pairs to the compiler with operations, as their frontend attributes.

    Args:
      x: a pytree of arrays: the operations that make its leaves get the pairs. Without it, the result is a context
        manager, which is about the operations traced inside, and a decorator.
      metadata: booleans, numbers or strings by name.

    Returns:
      `x` as it is, or the context manager.

    Raises:
      TypeError: a value is something else.
    """
    for name, value in metadata.items():
        if not isinstance(value, bool | int | float | str):
            raise TypeError(f"set_xla_metadata: {name} is a boolean, a number or a string, got {value!r}")
    pairs = tuple((k, str(v).lower() if isinstance(v, bool) else str(v)) for k, v in metadata.items())
    return _Hinted(pairs) if x is None else hint(x, pairs)
