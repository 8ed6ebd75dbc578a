"""Names and places of the code being traced, in the form that libraries ask for.

Needed by Flax (`register_exclusion`, in traceback_util).
"""

from __future__ import annotations

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

__all__ = [
    "NameStack",
    "SourceInfo",
    "current",
    "current_name_stack",
    "extend_name_stack",
    "register_exclusion",
    "summarize",
]
