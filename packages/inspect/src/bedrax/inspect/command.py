"""`python -m bedrax.inspect module:function`: write the page of a function's program."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bedrax.core import dtypes
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.inspect import paging, progress

_TYPE = re.compile(r"(?P<dtype>[a-z]+\d*(?:_\w+)?)\[(?P<shape>[\d,\s]*)\]")
_SHORT = {"f": "float", "i": "int", "u": "uint", "c": "complex", "bf": "bfloat"}


def argument(text: str) -> ShapeDtypeStruct:
    """Return the argument that a text describes: ``f32[5,3]``, as in printed programs, or ``float32[5,3]``.

    Raises:
      ValueError: the text describes no array.

    Examples:

      >>> from bedrax.inspect import command
      >>> command.argument("f32[5,3]")
      ShapeDtypeStruct(shape=(5, 3), dtype=float32)
    """
    found = _TYPE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"an argument is a dtype and a shape, such as f32[5,3], got {text!r}")
    name = re.sub(r"^(bf|[fiuc])(?=\d)", lambda m: _SHORT[m[1]], found["dtype"])
    shape = tuple([int(n) for n in found["shape"].split(",") if n.strip()])
    try:
        return ShapeDtypeStruct(shape, dtypes.explicit_dtype(name, "inspect"))
    except TypeError:
        raise ValueError(f"there is no dtype {found['dtype']!r}, in the argument {text!r}") from None


def function(text: str) -> Callable[..., Any]:
    """Return the function ``module:function``; the name may have dots.

    Raises:
      ValueError: the text has another form, or the module has no such function.
    """
    module, colon, names = text.partition(":")
    if not colon or not module or not names:
        raise ValueError(f"a function is written as module:function, got {text!r}")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(f"{error}; the folder {os.getcwd()} was searched, too") from None
    for name in names.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise ValueError(f"{module} has no {names!r}") from None
    if not callable(found):
        raise ValueError(f"{text} is not a function, but of type {type(found).__name__}")
    return found


def main(argv: list[str]) -> int:
    """Write the page of a function. Returns the exit status."""
    parser = argparse.ArgumentParser(
        "python -m bedrax.inspect", description="Write a page about the program that a function becomes."
    )
    parser.add_argument("function", help="module:function")
    parser.add_argument("arguments", nargs="*", help="types of the arguments, such as f32[5,3]")
    parser.add_argument("-o", "--output", type=Path, help="the file; by default the name of the function, with .html")
    given = parser.parse_args(argv)
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules of this folder
    try:
        fun = function(given.function)
        args = [argument(text) for text in given.arguments]
    except ValueError as error:
        print(f"inspect: {error}", file=sys.stderr)
        return 2
    made = paging.make(fun, args, {}, lambda text: progress.waiting(f"{given.function}: {text}", after=0.2))
    path = made.save(given.output or Path(f"{given.function.rpartition(':')[2]}.html"))
    print(path)
    return 0
