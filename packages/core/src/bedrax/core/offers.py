"""Functions of modules above, by what they are for: offered before anybody needs them, imported when somebody does."""

from __future__ import annotations

import importlib
from collections.abc import Callable

_functions: dict[str, tuple[str, str]] = {}  # purpose -> module, name of the function there


def offer(purpose: str, module: str, function: str) -> None:
    """Who asks for `purpose` gets this function of `module`, which is imported then."""
    _functions[purpose] = module, function


def offered(purpose: str, otherwise: Callable | None = None) -> Callable | None:
    """The function for `purpose`; `otherwise` if nobody has offered one."""
    found = _functions.get(purpose)
    return otherwise if found is None else getattr(importlib.import_module(found[0]), found[1])
