"""Modules whose names are imported on first use (PEP 562), declared as a table."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def attach(
    module: str, homes: Mapping[str, Sequence[str]], submodules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__, __dir__, __all__`` for a module.

    Args:
      module: its ``__name__``.
      homes: module -> the names taken from it; ``"local=home_name"`` renames.
      submodules: its own submodules that are imported on first use.
    """
    found = {}
    for home, names in homes.items():
        for name in names:
            local, _, original = name.partition("=")
            found[local] = (home, original or local)
    inner = frozenset(submodules)

    def get(name: str) -> Any:
        place = found.get(name)
        if place is not None:
            value = getattr(importlib.import_module(place[0]), place[1])
        elif name in inner:
            return importlib.import_module(f"{module}.{name}")
        else:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        sys.modules[module].__dict__[name] = value
        return value

    names = sorted({*found, *inner})
    return get, lambda: names, [n for n in names if not n.startswith("_")]
