"""Signatures of users' functions: static and donated arguments, and the names of leaves."""

from __future__ import annotations

import inspect
import operator
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bedrax import pytree
from bedrax.core.codes import coded
from bedrax.core.exact import equality_is_exact, exact
from bedrax.pytree import PyTreeDef

# From Python 3.14 on, annotations are evaluated at the first lookup.
_UNEVALUATED: dict[str, Any] = {}
if sys.version_info >= (3, 14):
    import annotationlib

    _UNEVALUATED["annotation_format"] = annotationlib.Format.FORWARDREF


def signature_of(fun: Callable[..., Any], *, follow_wrapped: bool = True) -> inspect.Signature:
    """Returns `inspect.signature` of a function whose annotations may contain undefined names.

    Raises:
      TypeError: `fun` is not callable.
      ValueError: the function has no signature, such as some functions of C.
    """
    return inspect.signature(fun, follow_wrapped=follow_wrapped, **_UNEVALUATED)


class Static:
    """A static argument in a key: equal to another one of the same type and value (numbers: the same bits)."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value: Any = value
        self.key: Any = exact(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is Static and type(self.value) is type(other.value) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def positions_of(argnums: Any, name: str) -> tuple[int, ...]:
    """Return positions as a tuple of ints: from the front, or negative ones from the end.

    Args:
      argnums: an int, a sequence of ints, or None for no position.
      name: that of the function and the parameter, for messages: ``"grad: argnums"``.

    Raises:
      TypeError: `argnums` is neither an int nor a sequence of ints.
    """
    if type(argnums) is int:
        return (argnums,)
    if argnums is None:
        return ()
    try:
        return (operator.index(argnums),) if is_position(argnums) else tuple(map(operator.index, argnums))
    except TypeError:
        raise TypeError(f"{name} must be an int or a sequence of ints, got {argnums!r}") from None


def is_position(x: Any) -> bool:
    """Return whether `x` is an integer, of Python or another library, not a sequence of integers."""
    try:
        operator.index(x)
    except TypeError:
        return False
    return True


def normalized(
    argnums: Any, count: int, name: str, counted: str = "positional arguments", *, distinct: bool = False
) -> tuple[int, ...]:
    """Return positions among `count` items as ints in ``range(count)``, in the given order, each once.

    Args:
      argnums: an int or a sequence of ints; negative ones count from the end.
      count: how many positions there are.
      name: that of the function and the parameter, for messages: ``"grad: argnums"``.
      counted: the name of the counted items, for messages.
      distinct: refuse a position that occurs twice, also if counted from both ends. Otherwise it counts once.

    Raises:
      TypeError: `argnums` is neither an int nor a sequence of ints.
      ValueError: a position does not exist, or (with `distinct`) is given twice.
    """
    given = positions_of(argnums, name)
    positions: dict[int, int] = {}
    for n in given:
        if not -count <= n < count:
            raise ValueError(
                coded(
                    "BX-ARGUMENT-POSITION",
                    f"{name}={argnums!r} names position {n}, but the number of {counted} is {count}",
                )
            )
        position = n + count if n < 0 else n
        if distinct and position in positions:
            raise ValueError(
                coded(
                    "BX-ARGUMENT-POSITION",
                    f"{name}={argnums!r} names position {position} twice, as {positions[position]} and as {n}; the number of"
                    f" {counted} is {count}",
                )
            )
        positions[position] = n
    return tuple(positions)


def _names(argnames: Any, name: str) -> tuple[str, ...]:
    """Return names as a tuple of strings, also if they are of a subclass of `str`; `name`: as in `positions_of`."""
    if argnames is None:
        return ()
    given = (argnames,) if isinstance(argnames, str) or not isinstance(argnames, Iterable) else tuple(argnames)
    if not all(isinstance(n, str) for n in given):
        raise TypeError(f"{name} must be a string or a sequence of strings, got {argnames!r}")
    return tuple([str.__str__(n) for n in given])


def _parameters(fun: Callable) -> list[inspect.Parameter] | None:
    try:
        return list(signature_of(fun).parameters.values())
    except (TypeError, ValueError):
        return None


def _positional(parameters) -> list[str]:
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def parameter_names(fun: Callable[..., Any]) -> list[str]:
    """Return the names of the positional parameters in the signature."""
    return _positional(_parameters(fun) or ())


class Signature:
    """The static and the donated arguments of a function.

    Positions are completed by names and names by positions, as far as the function's signature allows.

    Args:
      fun: the function.
      static_argnums, static_argnames, donate_argnums, donate_argnames: as in `jit`.

    Raises:
      ValueError: a position or name that the function does not have, or one that is both static and donated.
    """

    __slots__ = ("donate_argnames", "donate_argnums", "fun", "static_argnames", "static_argnums")

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Iterable[str] | None = None,
        donate_argnums: int | Sequence[int] | None = None,
        donate_argnames: str | Iterable[str] | None = None,
    ) -> None:
        self.fun: Callable[..., Any] = fun
        self.static_argnums: tuple[int, ...]
        self.static_argnames: tuple[str, ...]
        self.donate_argnums: tuple[int, ...]
        self.donate_argnames: tuple[str, ...]
        self.static_argnums, self.static_argnames = _resolve(fun, "static", static_argnums, static_argnames)
        self.donate_argnums, self.donate_argnames = _resolve(fun, "donate", donate_argnums, donate_argnames)
        clash: set[Any] = {*self.static_argnums} & {*self.donate_argnums}
        clash = clash or {*self.static_argnames} & {*self.donate_argnames}
        if clash:
            raise ValueError(
                coded(
                    "BX-STATIC-DONATED",
                    f"jit: arguments {sorted(clash)} are both static and donated; a static argument has no"
                    " buffer: name them in one of the two",
                )
            )

    def static_positions(self, count: int) -> set[int]:
        """Return the positions of the static ones of `count` positional arguments."""
        return _positions(self.static_argnums, count)

    def split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[Any, Any], tuple[Any, ...]]:
        """Return (dynamic args, dynamic kwargs, key of the static ones).

        Raises:
          ValueError: a static argument is not hashable.
        """
        if not self.static_argnums and not self.static_argnames:
            return args, kwargs, ()
        positions = self.static_positions(len(args))
        key = []
        for n in sorted(positions):
            _check_hashable(args[n], f"argument {n}")
            key.append((n, Static(args[n])))
        dynamic = tuple(a for i, a in enumerate(args) if i not in positions)
        named = self.static_argnames
        if named and kwargs:
            for name in named:
                if name in kwargs:
                    _check_hashable(kwargs[name], f"argument '{name}'")
                    key.append((name, Static(kwargs[name])))
            kwargs = {k: v for k, v in kwargs.items() if k not in named}
        return dynamic, kwargs, tuple(key)

    def equality_is_exact(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether `==` of the static arguments equals `==` of their keys; see `bedrax.core.exact`."""
        count = len(args)
        for n in self.static_argnums:
            if -count <= n < count and not equality_is_exact(args[n]):
                return False
        return not kwargs or all([equality_is_exact(kwargs[k]) for k in self.static_argnames if k in kwargs])

    def bound(self, fun: Callable[..., Any], static_key: tuple[Any, ...]) -> Callable[..., Any]:
        """Return `fun` of the dynamic arguments; `fun` itself if none is static, which saves frames in nested jits."""
        if not static_key:
            return fun
        positional = {n: s.value for n, s in static_key if type(n) is int}
        named = {n: s.value for n, s in static_key if type(n) is str}

        def call(*args, **kwargs):
            rest = iter(args)
            merged = [positional[i] if i in positional else next(rest) for i in range(len(args) + len(positional))]
            return fun(*merged, **kwargs, **named)

        return call

    def donated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, ...]:
        """Return a flag per leaf of dynamic arguments, true if donated. `kwargs` has only those, `args` all."""
        static = self.static_positions(len(args))
        donate = _positions(self.donate_argnums, len(args))
        flags: list[bool] = []
        for i, a in enumerate(args):
            if i not in static:
                flags += [i in donate] * len(pytree.tree_leaves(a))
        for name in sorted(kwargs):
            flags += [name in self.donate_argnames] * len(pytree.tree_leaves(kwargs[name]))
        return tuple(flags)


def _positions(argnums: Sequence[int], count: int) -> set[int]:
    """Return the positions of the function that a call with `count` positional arguments fills."""
    return {n + count if n < 0 else n for n in argnums if -count <= n < count}


def _resolve(fun, kind: str, argnums, argnames) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return (positions, names), each completed by the other. Positions are from the front, except for ``*args``."""
    if argnums is None and argnames is None:
        return (), ()
    parameters = _parameters(fun)
    nums, names = positions_of(argnums, f"jit: {kind}_argnums"), _names(argnames, f"jit: {kind}_argnames")
    if parameters is None:
        return nums, names
    by_position = _positional(parameters)
    keywords = {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)
    any_position = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for name in names:
        if name not in keywords and not any_keyword:
            raise ValueError(
                f"jit: {kind}_argnames has {name!r}, which the function does not take by keyword; its"
                f" parameters are {', '.join(p.name for p in parameters)}"
            )
    count = len(by_position)
    if not any_position:
        nums = normalized(nums, count, f"jit: {kind}_argnums", "arguments that the function takes by position")
    if argnums is None:
        nums = tuple(i for i, name in enumerate(by_position) if name in names)
    elif argnames is None:
        names = tuple(by_position[n] for n in nums if 0 <= n < count and by_position[n] in keywords)
    return nums, names


def _check_hashable(value, where: str) -> None:
    try:
        hash(value)
    except TypeError:
        raise ValueError(
            f"jit: the static {where} has type {type(value)}, which is not hashable. Programs are found by the hash and"
            " equality of static arguments: use a tuple for a list, a frozen class, or make the argument dynamic."
        ) from None


def plain_code(fun: Callable[..., Any]) -> types.CodeType | None:
    """Return the code of a function without attributes, else None. It replaces `inspect` at a tenth of the time."""
    return fun.__code__ if type(fun) is types.FunctionType and not fun.__dict__ else None


def leaf_names(fun: Any, in_tree: PyTreeDef, static: Sequence[int] = ()) -> list[str]:
    """Return names for messages of the leaves of the arguments of `fun`, a function or its `plain_code`.

    Args:
      in_tree: treedef of ``(args, kwargs)``, without the static arguments.
      static: positions of the static ones.
    """
    code = fun if type(fun) is types.CodeType else plain_code(fun)
    if code is not None:
        count = code.co_argcount
        named = code.co_varnames[:count]
        rest = code.co_varnames[count + code.co_kwonlyargcount] if code.co_flags & inspect.CO_VARARGS else None
    else:
        named = parameter_names(fun)
        rest = next((p.name for p in _parameters(fun) or () if p.kind is p.VAR_POSITIONAL), None)
    static = sorted(static)
    names = []
    for kind, which, *inner in pytree.leaf_paths(in_tree):
        if kind.idx == 1:
            root = str(which.key)
        else:
            position = which.idx
            for n in static:
                position += n <= position
            if position < len(named):
                root = named[position]
            else:
                root = f"args[{position}]" if rest is None else f"{rest}[{position - len(named)}]"
        names.append(root + pytree.keystr(inner) if inner else root)
    return names
