"""Names and source locations of the traced code, in the form that libraries use.

Needed by Flax (`register_exclusion`, in traceback_util).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from bedrax.core import source
from bedrax.core.names import NameStack, hints_of, named_scope, path
from bedrax.core.source import register_exclusion
from bedrax.core.tracing import current as _current


class SourceInfo(NamedTuple):
    """The source location and the named scopes of an operation.

    Attributes:
      traceback: a location as a text from `summarize`; None: unknown.
      name_stack: a `NameStack`.

    Examples:

      >>> from jax.extend import source_info_util as util

      >>> def f():
      ...     with jax.named_scope("encoder"):
      ...         return util.current()
      ...
      >>> info = f()
      >>> isinstance(info, util.SourceInfo), str(info.name_stack)
      (True, 'encoder')
      >>> util.summarize(info).endswith("(f)")
      True
    """

    traceback: Any
    name_stack: NameStack


def current_name_stack() -> NameStack:
    """The current named scopes: those of `jax.named_scope`, and of transformations of a function.

    Examples:

      >>> from jax.extend import source_info_util as util

      >>> with jax.named_scope("encoder"), jax.named_scope("attention"):
      ...     print(util.current_name_stack())
      encoder/attention
    """
    where = path(_current.names)
    return NameStack(where.split("/") if where else ())


def current() -> SourceInfo:
    """The current location in the user's code: the innermost frame of the user, and its named scopes.

    Examples:

      >>> from jax.extend import source_info_util as util

      >>> def f():
      ...     with jax.named_scope("encoder"):
      ...         return util.current()
      ...
      >>> print(f().name_stack, "at", util.summarize(f()))
      encoder at ...:3 (f)
    """
    return SourceInfo(source.user_frame(), current_name_stack())


def summarize(source_info: Any, num_frames: int = 1) -> str:
    """`file.py:12 (function)`: the innermost frame of the user. Other frames are not kept.

    Args:
      source_info: a `SourceInfo`, or the `source_info` of an equation; "unknown place" if it has no location.
      num_frames: accepted for compatibility.

    Examples:

      >>> from jax.extend import source_info_util as util

      >>> def f(x):
      ...     y = x + 1
      ...     return jnp.sin(y)
      ...
      >>> program = jax.make_jaxpr(f)(1.)
      >>> for eqn in program.eqns:
      ...     print(eqn.primitive, util.summarize(eqn.source_info))
      add ...:2 (f)
      sin ...:3 (f)
    """
    return source.describe(getattr(source_info, "traceback", source_info))


extend_name_stack = named_scope


def new_name_stack(name: str = "") -> NameStack:
    """A stack of one scope `name`, or of none.

    Examples:

      >>> from jax.extend import source_info_util as util

      >>> print(util.new_name_stack("encoder"), len(util.new_name_stack()))
      encoder 0
    """
    return NameStack((name,) if name else ())


def new_source_info() -> SourceInfo:
    """An unknown location without named scopes.

    Examples:

      >>> from jax.extend import source_info_util as util

      >>> info = util.new_source_info()
      >>> util.summarize(info), str(info.name_stack)
      ('unknown place', '')
    """
    return SourceInfo(None, NameStack())


@contextlib.contextmanager
def set_name_stack(name_stack: NameStack) -> Iterator[None]:
    """Context manager: `name_stack` replaces the current named scopes.

    Examples:

      >>> from jax.extend import source_info_util as util

      >>> with jax.named_scope("encoder"):
      ...     saved = util.current_name_stack()
      ...
      >>> with jax.named_scope("elsewhere"), util.set_name_stack(saved):
      ...     print(util.current_name_stack())
      encoder
    """
    saved = _current.names
    _current.names = (*hints_of(saved), *name_stack)
    try:
        yield
    finally:
        _current.names = saved


def reset_name_stack() -> contextlib.AbstractContextManager[Any]:
    """Context manager: inside, there are no named scopes.

    Examples:

      >>> from jax.extend import source_info_util as util

      >>> with jax.named_scope("encoder"):
      ...     with util.reset_name_stack():
      ...         apart = str(util.current_name_stack())
      ...     print([apart, str(util.current_name_stack())])
      ['', 'encoder']
    """
    return set_name_stack(NameStack())


def transform_name_stack(name: str) -> contextlib.AbstractContextManager[Any]:
    """Context manager: the scopes are those of a transformed function: ``name(outer/inner)``.

    Examples:

      >>> from jax.extend import source_info_util as util

      >>> with jax.named_scope("encoder"), jax.named_scope("attention"):
      ...     with util.transform_name_stack("jvp"):
      ...         print(util.current_name_stack())
      jvp(encoder/attention)
    """
    return set_name_stack(NameStack((f"{name}({current_name_stack()})",)))


def user_context(traceback: Any, *, name_stack: NameStack | None = None) -> contextlib.AbstractContextManager[Any]:
    """Return a context manager that sets the named scopes.

    Args:
      traceback: no effect: source locations inside are those of the user's frames.
      name_stack: the named scopes in the context, a `NameStack`; None: they stay unchanged.

    Examples:

      >>> from jax.extend import source_info_util as util

      >>> with jax.named_scope("encoder"):
      ...     info = util.current()
      ...
      >>> with util.user_context(info.traceback, name_stack=info.name_stack):
      ...     print(util.current_name_stack())
      encoder
    """
    return contextlib.nullcontext() if name_stack is None else set_name_stack(name_stack)


__all__ = [
    "NameStack",
    "SourceInfo",
    "current",
    "current_name_stack",
    "extend_name_stack",
    "new_name_stack",
    "new_source_info",
    "register_exclusion",
    "reset_name_stack",
    "set_name_stack",
    "summarize",
    "transform_name_stack",
    "user_context",
]
