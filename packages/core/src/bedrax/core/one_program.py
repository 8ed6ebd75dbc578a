"""Functions of several operations that run as one compiled program when they are called on arrays.

Arguments are read: constants must be hashable, the rest must be values that a program takes. If they are not (an
axis given as an array, an object instead of an array), the function is called without compilation and raises its own
error. Constants are read at each call. Values are read only where no compiled program is known for their types.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import chain, repeat
from typing import Any, Protocol, overload

import numpy as np

from bedrax.core import composites, config, dtypes, executors, jitting, source
from bedrax.core.array import Array
from bedrax.core.exact import exact
from bedrax.core.signatures import signature_of
from bedrax.core.tracing import current, eval_trace
from bedrax.core.typing import P, Program, R

# Types whose values are constants to be compared as they are, and arguments of programs; others are added at first use.
_constants: set[type] = {int, bool, str, type(None), type, *map(type, dtypes.all_dtypes)}
_values: set[type] = {int, bool, float, complex, type(None)}

_ELEMENTS = frozenset((int, bool, str, type(None)))  # tuples of these compare as they are, too
_INEXACT = (tuple, float, complex, np.inexact)
_DEFAULTS = (int, str, type, type(None), np.dtype, Enum)  # the types of defaults of constants
_DTYPES = frozenset(dtypes.all_dtypes)
_UNREADABLE: Any = object()
_STARRED = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def _is_checked() -> bool:
    """Return whether debug options check the results of operations.

    A function is checked as a whole. A value inside the function may be NaN or infinite if the function masks it.
    """
    return config.debug_nans.value or config.debug_infs.value


class _Exact:
    """A constant to be compared by types and bits (see `exact`)."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key = exact(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Exact and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _value(x: Any) -> Any:
    return x.value if type(x) is _Exact else x


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if type(x) is list else x


def _has_hash(x: Any) -> bool:
    return all(map(_has_hash, x)) if isinstance(x, tuple) else type(x).__hash__ is not None


def _as_constant(x: Any) -> Any:
    """Return `x` as a static argument (lists become tuples), or `_UNREADABLE`."""
    kind = type(x)
    if kind in _constants or kind is tuple and _ELEMENTS.issuperset(map(type, x)):
        return x
    x = _tuples(x)
    if type(x) is tuple and _ELEMENTS.issuperset(map(type, x)):
        return x
    if not _has_hash(x):
        return _UNREADABLE
    if isinstance(x, _INEXACT) and not hasattr(kind, "_fields"):  # a NamedTuple has its own `==`
        return _Exact(x)
    _constants.add(kind)
    return x


def _is_value(x: Any) -> bool:
    """Return whether a program takes `x` as an argument."""
    kind = type(x)
    if kind in _values or kind is tuple and _values.issuperset(map(type, x)):
        return True
    if issubclass(kind, (np.ndarray, np.generic)):
        return x.dtype in _DTYPES
    if issubclass(kind, (tuple, list)):
        return all(map(_is_value, x))
    if isinstance(x, Array):
        _values.add(kind)
        return True
    return False


def _as_argument(x: Any, constant: bool) -> Any:
    if constant:
        return _as_constant(x)
    return x if _is_value(x) else _UNREADABLE


def _read(args: tuple, kwargs: dict, positions: Sequence[bool], static: frozenset) -> tuple[list, dict] | None:
    """Return the arguments for the compiled function, or None if it cannot take them."""
    constants = chain(positions, repeat(False))  # the function raises if there are too many
    new_args = [_as_argument(x, constant) for x, constant in zip(args, constants, strict=False)]
    new_kwargs = {name: _as_argument(x, name in static) for name, x in kwargs.items()}
    if any(x is _UNREADABLE for x in chain(new_args, new_kwargs.values())):
        return None
    return new_args, new_kwargs


def _parameters(fun: Callable) -> tuple[list[str], list[str], dict[str, Any]]:
    """Return (names of parameters, positional ones, defaults), without `inspect` for a plain function."""
    code = getattr(fun, "__code__", None)
    if code is None or hasattr(fun, "__wrapped__") or hasattr(fun, "__signature__") or code.co_flags & _STARRED:
        found = signature_of(fun).parameters.values()
        positional = [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        return [p.name for p in found], positional, {p.name: p.default for p in found if p.default is not p.empty}
    names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    positional, last = names[: code.co_argcount], fun.__defaults__ or ()  # type: ignore[attr-defined]
    defaults = dict(zip(positional[len(positional) - len(last) :], last, strict=True))
    return names, positional, {**defaults, **(fun.__kwdefaults__ or {})}  # type: ignore[attr-defined]


def _checked(fun: Callable, static: Sequence[str], arrays: Sequence[str]) -> list[bool]:
    """Return for each positional parameter whether it is static.

    Raises:
      TypeError: a name is not a parameter, or a parameter whose default is not an array is neither static nor among `arrays`.
    """
    names, positional, defaults = _parameters(fun)
    name = getattr(fun, "__name__", fun)
    for given in (*static, *arrays):
        if given not in names:
            raise TypeError(f"one_program: {name} has no parameter {given!r}, only {', '.join(names)}")
    for n, default in defaults.items():
        if isinstance(default, _DEFAULTS) and n not in static and n not in arrays:
            raise TypeError(
                f"one_program: is {n}={default!r} of {name} a constant or an array? Name it in `static` or `arrays`"
            )
    return [n in static for n in positional]


def _reading(fun: Callable, composite: str | None) -> Callable:
    """Return `fun` of arguments that `_read` returned, and name the program that is recorded."""

    @functools.wraps(fun)
    def program(*args, **kwargs):
        args, kwargs = tuple(map(_value, args)), {name: _value(x) for name, x in kwargs.items()}
        if composite is not None:
            composites.name_program(composite, args, kwargs)
        return fun(*args, **kwargs)

    return program


def _without_program(fun: Callable, positions: Sequence[bool], static: frozenset) -> Callable:
    """Return `in_place` of the compiled function (see `jitting.operation`). It refers to no compiled function."""

    def in_place(args, kwargs):
        if _read(args, kwargs, positions, static) is not None:
            return None
        return (fun(*map(_value, args), **{name: _value(x) for name, x in kwargs.items()}),)

    return in_place


class _Programs:
    """The compiled programs of a function, made at first use."""

    __slots__ = ("compiled_of", "composite", "everywhere", "fun", "positions", "state", "static")

    def __init__(
        self,
        fun: Callable[..., Any],
        static: Sequence[str],
        positions: list[bool],
        everywhere: bool,
        composite: str | None,
    ) -> None:
        self.fun, self.everywhere, self.composite = fun, everywhere, composite
        self.static, self.positions = tuple(static), positions
        # A pair (executor, function that it compiled), which is replaced as a whole. The first executor is a
        # placeholder and not None, which is active before the first evaluation: that call is one program, too.
        self.state: tuple[Any, Callable[..., Any]] = (object(), fun)
        self.compiled_of = functools.lru_cache(4096)(self._compiled)

    def read_and_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function on arguments that a program may not take."""
        executor = executors.get()
        found = _read(args, kwargs, self.positions, self.static) if self.everywhere or executor.compiles else None
        if found is None:
            return self.fun(*args, **kwargs)
        made_by, compiled = self.state
        if made_by is not executor:
            program, inline = _reading(self.fun, self.composite), self.composite is not None
            in_place = _without_program(self.fun, self.positions, frozenset(self.static))
            compiled = jitting.operation(program, self.static, inline, in_place)
            self.state = executor, compiled
        return compiled(*found[0], **found[1])

    def error_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
        """Return the error of the function itself for sequences of arrays: it names them, not tracers in their place."""
        if any(isinstance(x, list | tuple) for x in (*args, *kwargs.values())):
            try:
                self.fun(*args, **kwargs)
            except Exception as error:
                return error
        return None

    def bound(self, constants: tuple[Any, ...]) -> Callable[..., Any]:
        """Return the function of the other arguments."""
        return functools.partial(self.fun, **dict(zip(self.static, constants, strict=False)))

    def _compiled(self, executor: executors.Executor, constants: tuple) -> Callable:
        plain, compiles = self.bound(constants), self.everywhere or executor.compiles
        return jitting.operation(functools.update_wrapper(plain, self.fun)) if compiles else plain

    def of(self, *constants: Any) -> Callable[..., Any]:
        """See `one_program`."""
        if current.trace is not eval_trace and not (self.everywhere or _is_checked()):
            return self.bound(constants)
        return self.compiled_of(executors.active or executors.get(), constants)


class _ProgramDecorator(Protocol):
    def __call__(self, fun: Callable[P, R], /) -> Program[P, R]: ...


@overload
def one_program(
    fun: Callable[P, R],
    /,
    *,
    static: Sequence[str] = (),
    arrays: Sequence[str] = (),
    everywhere: bool = False,
    composite: str | None = None,
) -> Program[P, R]: ...
@overload
def one_program(
    *, static: Sequence[str] = (), arrays: Sequence[str] = (), everywhere: bool = False, composite: str | None = None
) -> _ProgramDecorator: ...
def one_program(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    static: Sequence[str] = (),
    arrays: Sequence[str] = (),
    everywhere: bool = False,
    composite: str | None = None,
) -> Any:
    """Decorator: where the active executor compiles, an eager call is one program, dispatched once.

    Under a transformation, or where NumPy evaluates, it is a plain call; under a transformation it is one program, too, if
    `jax_debug_nans` or `jax_debug_infs` is set. The result has an attribute ``of``:
    ``f.of(*constants)``, given the first of the static arguments (data that is compared by ``==``), is one program of
    the other arguments, for callers that have checked them.

    Args:
      fun: a pure function of arrays. Without it, returns a decorator.
      static: names of the parameters that are compile-time constants. They are compared by type and bits.
      arrays: names of parameters that are arrays although their defaults (None, 0, ...) look like constants.
      everywhere: transformations and NumPy also get one call of one program.
      composite: a name for the program, by which backends know the function (`bedrax.core.composites`); implies
        `everywhere`. A compiled module has the operations of the program in place of the call.

    Raises:
      TypeError: a name is not a parameter, or one with such a default is named in neither.
    """
    if fun is None:
        return functools.partial(one_program, static=static, arrays=arrays, everywhere=everywhere, composite=composite)
    everywhere = everywhere or composite is not None
    positions = _checked(fun, static, arrays)
    names = frozenset(static)
    constants = [i for i, constant in enumerate(positions) if constant]
    leading = constants[0] if constants else sys.maxsize
    programs = _Programs(fun, static, positions, everywhere, composite)
    made_by, compiled = programs.state

    def constants_are_read(args, kwargs):
        """Whether the compiled function takes the constants as they are."""
        for i in constants:
            if i >= len(args):
                break
            if type(args[i]) not in _constants:
                return False
        return all([type(kwargs[name]) in _constants for name in kwargs if name in names]) if kwargs else True

    @functools.wraps(fun)
    def function(*args, **kwargs):
        nonlocal made_by, compiled
        try:
            if current.trace is not eval_trace:
                if not (everywhere or _is_checked()):
                    return fun(*args, **kwargs)
            elif executors.active is made_by:
                if not kwargs and len(args) <= leading or constants_are_read(args, kwargs):
                    return compiled(*args, **kwargs)
            out = programs.read_and_call(args, kwargs)
            executor, compiled = programs.state
            made_by = executor  # last: other threads use `compiled` only after this
            return out
        except Exception as error:
            other = programs.error_of(args, kwargs) if type(error) is TypeError else None
            source.shorten(other or error)
            if other is not None:
                raise other from other.__cause__
            raise

    function.static, function.of = names, programs.of  # type: ignore[attr-defined]
    return function
