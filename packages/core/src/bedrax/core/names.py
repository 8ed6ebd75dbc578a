"""Names for traced operations: they show in profiles, compiled programs and messages."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable
from typing import Any

from bedrax.core.tracing import current
from bedrax.core.typing import P, R


class named_scope(contextlib.ContextDecorator):
    """Name the operations traced inside, for profiles and compiled programs.

    Args:
      name: one component of the name, e.g. ``"attention"``.

    Examples:

      >>> @jax.jit
      ... def f(x):
      ...     with jax.named_scope("attention"):
      ...         return 2 * x
      ...
      >>> f(3.)
      Array(6., dtype=float32, weak_type=True)

      >>> from jax.extend import source_info_util as util

      >>> with util.extend_name_stack("encoder"), util.extend_name_stack("attention"):
      ...     print(util.current_name_stack())
      encoder/attention
      >>> @util.extend_name_stack("decoder")
      ... def f():
      ...     return str(util.current_name_stack())
      ...
      >>> f()
      'decoder'
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"named_scope needs a string, got {name!r} of type {type(name)}")
        self.name = name

    def __enter__(self) -> Any:
        current.names = (*current.names, self.name)
        return self.name

    def __exit__(self, *_: Any) -> None:
        names = current.names  # the object keeps nothing: threads may share it
        current.names = names[:-1] if names and names[-1] is self.name else without_last(names, self.name)


def without_last(names: tuple[Any, ...], name: Any) -> tuple[Any, ...]:
    """Return the names in force after the end of the last block with `name`; a later block may go on."""
    for i in range(len(names) - 1, -1, -1):
        if names[i] == name:
            return names[:i] + names[i + 1 :]
    return names


class Transform:
    """A transformation that is running, among the names in force. It encloses the next scope: ``jvp(model)/layer``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: str = name


JVP, TRANSPOSE, VMAP = map(Transform, ("jvp", "transpose", "vmap"))


def hints_of(names: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the names in force for a program that is recorded: hints for the compiler, without scopes.

    The scopes around a program are those of the operation that holds it.
    """
    return tuple([n for n in names if type(n) is tuple])


def path(names: Iterable[Any], inner: str = "") -> str:
    """Return the path of the names in force, and of the path `inner` within them."""
    parts = []
    opened = closed = ""
    for name in names:
        if type(name) is Transform:
            opened, closed = f"{opened}{name.name}(", closed + ")"
        elif type(name) is not tuple:
            parts.append(f"{opened}{name}{closed}")
            opened = closed = ""
    first, slash, rest = inner.partition("/")
    if first or opened:
        parts.append(f"{opened}{first}{closed}{slash}{rest}")
    return "/".join(parts)


class NameStack(tuple[str, ...]):
    """The named scopes around an operation: a tuple of strings, outermost first.

    ``str`` joins them by ``/``. Sums and slices are stacks, too.

    Examples:

      >>> from jax.experimental import jax2tf
      >>> from jax.experimental.jax2tf import jax2tf as inside

      >>> print(inside.NameStack(("model", "layer")))
      model/layer

      >>> from jax.extend import source_info_util as util

      >>> stack = util.NameStack(("encoder", "attention"))
      >>> print(stack)
      encoder/attention
      >>> print(stack + util.new_name_stack("softmax"))
      encoder/attention/softmax
    """

    def __new__(cls, stack: Iterable[str] = ()) -> NameStack:
        return tuple.__new__(cls, stack)

    @property
    def stack(self) -> tuple[str, ...]:
        return tuple(self)

    def __str__(self) -> str:
        return "/".join(self)

    def __add__(self, inner: Iterable[str]) -> NameStack:  # type: ignore[override]
        return NameStack((*self, *inner))

    def __getitem__(self, which: Any) -> Any:
        found = tuple.__getitem__(self, which)
        return NameStack(found) if isinstance(which, slice) else found


class Place(tuple[Any, ...]):
    """The place of an equation: a code object, an offset in it, and, inside named scopes, the result of `scopes`.

    It is empty for an equation of no user's line, such as one of a program that is built by hand.

    Attributes:
      traceback: the code object and the offset, for ``jax.extend.source_info_util.summarize``.
      name_stack: the named scopes, a `NameStack`.
    """

    @property
    def traceback(self) -> tuple[Any, ...]:
        return tuple(self[:2])

    @property
    def name_stack(self) -> NameStack:
        return NameStack(self[2].split("/") if len(self) > 2 and self[2] else ())


def scopes(names: tuple[Any, ...], recorded: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """Return the names in force for an equation: their path, and pairs for the compiler.

    Args:
      recorded: the same of the equation that runs again; its path is within the names.
    """
    key = (names, recorded)
    found = _scopes.get(key)
    if found is None:
        if len(_scopes) >= _MOST_SCOPES:
            _scopes.clear()
        where, *more = recorded or ("",)
        pairs = dict(pair for hint in (*hints_of(names), *more) for pair in hint)
        found = _scopes[key] = (path(names, where), *([tuple(pairs.items())] if pairs else []))
    return found


_scopes: dict[Any, tuple[Any, ...]] = {}
_MOST_SCOPES = 4096


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Return a function that runs `fun` in a `named_scope`.

    Args:
      fun: the function.
      name: the name of the scope. Default: that of the function.

    Examples:

      >>> @jax.named_call
      ... def attention(x):
      ...     return 2 * x
      ...
      >>> attention(3.)
      6.0
    """
    return functools.wraps(fun)(named_scope(name or getattr(fun, "__name__", "call"))(fun))
