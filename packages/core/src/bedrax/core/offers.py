"""What modules above have: offered before anybody needs it, imported when somebody does."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

_functions: dict[str, tuple[str, str]] = {}  # purpose -> module, name of the function there
options: list[str] = []  # modules that declare options (`bedrax.core.config`) that nobody has asked for yet


def offer(purpose: str, module: str, function: str) -> None:
    """Who asks for `purpose` gets this function of `module`, which is imported then."""
    _functions[purpose] = module, function


def offered(purpose: str, otherwise: Callable[..., Any] | None = None) -> Callable[..., Any] | None:
    """The function for `purpose`; `otherwise` if nobody has offered one."""
    module, name = _functions.get(purpose, (None, ""))
    return getattr(importlib.import_module(module), name) if module else otherwise
