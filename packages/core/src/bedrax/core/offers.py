"""Functions and options of modules above, registered by name and imported at first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

_functions: dict[str, tuple[str, str]] = {}  # purpose -> module, name of the function there
options: list[str] = []  # modules that declare options (`bedrax.core.config`), not imported yet


def offer(purpose: str, module: str, function: str) -> None:
    """Register a function of `module` for `purpose`. The module is imported at first use."""
    _functions[purpose] = module, function


def offered(purpose: str, otherwise: Callable[..., Any] | None = None) -> Callable[..., Any] | None:
    """Return the function for `purpose`; `otherwise` if there is none."""
    module, name = _functions.get(purpose, (None, ""))
    return getattr(importlib.import_module(module), name) if module else otherwise
