"""Errors that name the public function that the user called, and the argument.

The functions that check arguments serve many public functions. They find the called one among the frames
of the interpreter when they raise.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from bedrax.core import source
from bedrax.core.codes import coded

_VARARGS, _VARKEYWORDS = 0x04, 0x08  # of code.co_flags


def not_an_array(x: Any, name: str, position: int | None = None, otherwise: bool = False) -> TypeError:
    """Return the error of an argument that is not an array.

    Args:
      x: the argument.
      name: of the function that checks it, for the message if no public function is found.
      position: that of the argument in that function.
      otherwise: `name` is the whole message if no public function is found.
    """
    advice = "; make lists arrays with jnp.array" if isinstance(x, list | tuple) else ""
    called = _called_with(x)
    parameter = ""
    if called is not None:
        name, place, parameter = called
    elif otherwise:
        return TypeError(coded("BX-VALUE-TYPE", name))
    else:
        place = "" if position is None else f" at position {position}"
    found = "None" if x is None else f"{type(x)}"
    text = f"{name}: an array or a number is needed{place}, got {found}{parameter}{advice}"
    return TypeError(coded("BX-NOT-AN-ARRAY", text))


def _called_with(x: Any) -> tuple[str, str, str] | None:
    """Return the public function that the user called with `x`, and (" at position 1", " for q"); or None."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not source.is_user_frame(frame):
        frames.append(frame)
        frame = frame.f_back
    by_code, by_object = _public_functions()
    for frame in reversed(frames):
        here = list(_arguments(frame))
        place = next((p for p, value in here if value is x), None)
        if place is None:
            place = next((p for p, value in here if _holds(value, x)), None)
        if place is None:
            continue
        for name, function in by_code.get(frame.f_code, ()):
            if _is_called(function, frame):
                return name, *_described(function, place)
        called = by_object.get(id(frame.f_locals.get("self")))
        if called is not None and isinstance(place, int):
            return called[0], f" at position {place - 1}", ""
    return None


def _arguments(frame: FrameType) -> Iterator[tuple[int | str, Any]]:
    """The arguments that a frame was called with: position or name, and value."""
    code, values = frame.f_code, frame.f_locals
    names, count = code.co_varnames, code.co_argcount
    for i, name in enumerate(names[: count + code.co_kwonlyargcount]):
        yield i if i < count else name, values.get(name)
    rest = count + code.co_kwonlyargcount
    if code.co_flags & _VARARGS:
        yield from enumerate(values.get(names[rest]) or (), count)
        rest += 1
    if code.co_flags & _VARKEYWORDS:
        yield from (values.get(names[rest]) or {}).items()


def _holds(value: Any, x: Any) -> bool:
    """Return whether `x` is an element of a sequence, or a copy of the sequence in which numbers are tracers."""
    if not isinstance(value, list | tuple):
        return False
    return any(v is x for v in value) or (type(value) is type(x) and len(value) == len(x))


def _described(function: Callable, place: int | str) -> tuple[str, str]:
    if isinstance(place, str):
        return f" as {place}", ""
    code = getattr(_unwrapped(function), "__code__", None)
    named = code is not None and place < code.co_argcount
    return f" at position {place}", f" for {code.co_varnames[place]}" if named else ""


def _is_called(function: FunctionType, frame: FrameType) -> bool:
    """Return whether a frame of a function's code is a call of it, not of another function with the same code."""
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            if frame.f_locals.get(name) is not cell.cell_contents:
                return False
        except ValueError:  # an empty cell
            return False
    return True


def _unwrapped(function: Any) -> Any:
    while True:
        inner = function.func if isinstance(function, functools.partial) else getattr(function, "__wrapped__", None)
        if inner is None:
            return function
        function = inner


def _public_functions() -> tuple[dict, dict]:
    """Return the loaded public functions, (name, function) by code, and other callables, (name, object) by id."""
    global _found
    modules = [
        (name, module)
        for name, module in sorted(sys.modules.items(), key=_rank)
        if module is not None and name.partition(".")[0] in ("jax", "bedrax")
    ]
    size = sum([len(vars(module)) for _, module in modules])
    if _found is None or _found[0] != size:
        _found = (size, *_read(modules))
    return _found[1:]


def _rank(item: tuple[str, ModuleType]) -> tuple[bool, bool, int, str]:
    """Modules of jax come first, private ones last, and ``jax`` before ``jax.numpy``."""
    name = item[0]
    return name.startswith("bedrax"), "._" in name, name.count("."), name


_found: tuple[int, dict[Any, Any], dict[Any, Any]] | None = None  # number of names, functions, objects


def _read(modules: list[tuple[str, ModuleType]]) -> tuple[dict, dict]:
    by_code: dict[CodeType, list[tuple[str, FunctionType]]] = {}
    by_object: dict[int, tuple[str, Any]] = {}
    for module_name, module in modules:
        public = getattr(module, "__all__", ()) if module_name.startswith("bedrax") else vars(module)
        for attribute, value in list(vars(module).items()):
            if attribute.startswith("_") or attribute not in public or isinstance(value, type) or not callable(value):
                continue
            name = _name_of(module_name, attribute)
            for layer in _layers(value):
                if isinstance(layer, FunctionType):
                    by_code.setdefault(layer.__code__, []).append((name, layer))
            if not isinstance(_unwrapped(value), FunctionType):
                by_object.setdefault(id(value), (name, value))
    return by_code, by_object


def _layers(value: Any) -> Iterator[Any]:
    """A function, and those that it wraps."""
    while value is not None:
        yield value
        value = value.func if isinstance(value, functools.partial) else getattr(value, "__wrapped__", None)


def _name_of(module: str, attribute: str) -> str:
    short = "jnp" if module.partition(".")[2] == "numpy" else module
    return f"{short}.{attribute}"
