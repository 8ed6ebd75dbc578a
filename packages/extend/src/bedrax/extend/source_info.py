"""Names and places of the code being traced, in the form that libraries ask for.

Needed by Flax (`register_exclusion`, in traceback_util).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from bedrax.core import source
from bedrax.core.names import named_scope
from bedrax.core.source import register_exclusion
from bedrax.core.tracing import current as _current


class NameStack(tuple):
    """The named scopes around us, outermost first."""

    def __new__(cls, stack=()):
        return tuple.__new__(cls, stack)

    stack = property(lambda self: tuple(self))

    def __str__(self):
        return "/".join(self)


class SourceInfo(NamedTuple):
    """Where an operation was made, and under which names."""

    traceback: Any
    name_stack: NameStack


def current_name_stack() -> NameStack:
    """The named scopes around us."""
    return NameStack(_current.names)


def current() -> SourceInfo:
    """Where we are in the user's code."""
    return SourceInfo(source.user_frame(), current_name_stack())


def summarize(source_info: Any, num_frames: int = 1) -> str:
    """`file.py:12 (function)`: the innermost of the user's frames, the only one that is kept."""
    return source.describe(getattr(source_info, "traceback", source_info))


extend_name_stack = named_scope


def new_name_stack(name: str = "") -> NameStack:
    """A stack of one scope, or of none."""
    return NameStack((name,) if name else ())


def new_source_info() -> SourceInfo:
    """A place that is not known, under no names."""
    return SourceInfo(None, NameStack())


@contextlib.contextmanager
def set_name_stack(name_stack: NameStack) -> Iterator[None]:
    """Context manager: other named scopes are around us."""
    saved, _current.names = _current.names, tuple(name_stack)
    try:
        yield
    finally:
        _current.names = saved


def reset_name_stack() -> contextlib.AbstractContextManager:
    """Context manager: no named scopes are around us."""
    return set_name_stack(NameStack())


def transform_name_stack(name: str) -> contextlib.AbstractContextManager:
    """Context manager: the scopes around us are those of a transformed function: ``name(outer/inner)``."""
    return set_name_stack(NameStack((f"{name}({current_name_stack()})",)))


def user_context(traceback: Any, *, name_stack: NameStack | None = None) -> contextlib.AbstractContextManager:
    """Context manager: named scopes of `name_stack`. Places are those of the frames of the user, also inside."""
    return contextlib.nullcontext() if name_stack is None else set_name_stack(name_stack)


__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack", "new_name_stack",
    "new_source_info", "register_exclusion", "reset_name_stack", "set_name_stack", "summarize", "transform_name_stack",
    "user_context",
]  # fmt: skip
