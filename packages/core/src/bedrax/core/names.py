"""Names for what is traced: they show in profiles, compiled programs and messages."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable

from bedrax.core.tracing import current


class named_scope(contextlib.ContextDecorator):
    """Name the operations traced inside, for profiles and compiled programs.

    Args:
      name: one component of the name, e.g. ``"attention"``.
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"named_scope needs a string, got {name!r} of type {type(name)}")
        self.name = name

    def __enter__(self):
        current.names = (*current.names, self.name)
        return self.name

    def __exit__(self, *_):
        current.names = current.names[:-1]  # the object keeps nothing: threads may share it


@contextlib.contextmanager
def apart():
    """Start without scopes: a function that is called by its name is named by each of its callers."""
    saved, current.names = current.names, tuple(n for n in current.names if type(n) is not str)
    try:
        yield
    finally:
        current.names = saved


def scopes(names: tuple) -> tuple:
    """What an equation keeps of the names in force: their path, and what stands there for the compiler: pairs."""
    try:
        return ("/".join(names),)
    except TypeError:  # not only names
        path = "/".join([n for n in names if type(n) is str])
    pairs = tuple({k: v for n in names if type(n) is not str for k, v in n}.items())
    return (path, pairs) if pairs else (path,)


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """`fun`, run in a `named_scope` (of the function's own name by default)."""
    return functools.wraps(fun)(named_scope(name or getattr(fun, "__name__", "call"))(fun))
