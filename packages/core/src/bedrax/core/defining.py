"""Public functions that other functions make: their names, docstrings, and parameters."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

from bedrax.core.typing import F

REQUIRED: Final = inspect.Parameter.empty
"""In place of the default of a parameter that has none."""


def with_example(doc: str, example: str) -> str:
    """Return a docstring with the section "Examples". The lines of `doc` and of `example` may be indented."""
    lines = inspect.cleandoc(example).replace("\n", "\n  ").replace("\n  \n", "\n\n")
    return f"{inspect.cleandoc(doc)}\n\nExamples:\n\n  {lines}\n" if lines else doc


def named(function: F, name: str, module: str, doc: str, example: str = "") -> F:
    """Make `function` the public function `name` of `module`, in tracebacks, too; returns it.

    Args:
      doc: its docstring.
      example: a doctest, the last section of the docstring.
    """
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = module, with_example(doc, example)
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)  # type: ignore[attr-defined]
    return function


# For each number of parameters, a function of a function. `taking` gives its result other names and defaults.
_CALLS: Final[tuple[Callable[..., Any], ...]] = (
    lambda f: lambda: f(),
    lambda f: lambda a: f(a),
    lambda f: lambda a, b: f(a, b),
    lambda f: lambda a, b, c: f(a, b, c),
    lambda f: lambda a, b, c, d: f(a, b, c, d),
    lambda f: lambda a, b, c, d, e: f(a, b, c, d, e),
    lambda f: lambda a, b, c, d, e, g: f(a, b, c, d, e, g),
    lambda f: lambda a, b, c, d, e, g, h: f(a, b, c, d, e, g, h),
    lambda f: lambda a, b, c, d, e, g, h, i: f(a, b, c, d, e, g, h, i),
)


def taking(
    fun: Callable[..., Any], parameters: Mapping[str, Any], keywords: Mapping[str, Any] = types.MappingProxyType({})
) -> Callable[..., Any]:
    """Return a function with these parameters that calls `fun` with all of them by position. Python binds them.

    Args:
      parameters: name -> default of each parameter by position or keyword; `REQUIRED` for one without a default.
      keywords: name -> default of each parameter by keyword only.
    """
    made = _CALLS[len(parameters) + len(keywords)](fun)
    code = made.__code__.replace(
        co_varnames=(*parameters, *keywords), co_argcount=len(parameters), co_kwonlyargcount=len(keywords)
    )
    defaults = tuple(default for default in parameters.values() if default is not REQUIRED)
    made = types.FunctionType(code, made.__globals__, code.co_name, defaults, made.__closure__)
    made.__kwdefaults__ = dict(keywords)
    return made
