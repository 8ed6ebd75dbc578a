"""Scopes around user code: names for what is traced, and evaluation at once inside a trace."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from bedrax.core.avals import AbstractValue, aval_of
from bedrax.core.tracing import Trace, Tracer, current, entered, eval_trace, set_trace


class named_scope(contextlib.ContextDecorator):
    """Name the operations traced inside, for profiles and compiled programs.

    Args:
      name: one component of the name, e.g. ``"attention"``.
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"named_scope name argument must be a string, got {name!r} of type {type(name)}")
        self.name = name

    def __enter__(self):
        current.names = (*current.names, self.name)
        return self.name

    def __exit__(self, *_):
        current.names = current.names[:-1]  # the object keeps nothing: threads may share it


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """`fun`, run in a `named_scope` (of the function's own name by default)."""
    return functools.wraps(fun)(named_scope(name or getattr(fun, "__name__", "call"))(fun))


class _KnownAtOnce(Trace):
    """Evaluates operations on concrete values at once; those on tracers are the parent's."""

    __slots__ = ()
    sees_constants = False

    def process(self, prim, args, params):
        """Evaluate, or hand on to the parent."""
        if not any(isinstance(x, Tracer) for x in args):
            return eval_trace.process(prim, args, params)
        with set_trace(self.parent):
            return self.parent.process(prim, args, params)


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Evaluate operations on concrete values at once, even while a function is traced.

    Operations on traced values are traced as ever.
    """
    if current.trace is eval_trace:
        yield
        return
    with entered(_KnownAtOnce(current.trace)):
        yield


@contextlib.contextmanager
def eval_context() -> Iterator[None]:
    """Evaluate all operations at once, even while a function is traced; their operands must be concrete."""
    with set_trace(eval_trace):
        yield


def typeof(x: Any) -> AbstractValue:
    """The type of a value: a `ShapedArray` for arrays, tracers and scalars."""
    return aval_of(x)
