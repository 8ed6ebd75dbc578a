"""Modules whose names are imported on first use (PEP 562), declared in the stub that type checkers read."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Attached = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def attach_stub(module: str, file: str, extra: str = "") -> Attached:
    """``__getattr__, __dir__, __all__`` for a module whose names stand in the stub (``.pyi``) beside it.

    The stub consists of imports, which mean here what they mean to a type checker:

    * ``from home import name as local``: a public name, imported from `home` when first asked for.
      Without ``as`` it is found as well, but is not in ``__all__``.
    * ``from . import inner as inner``: a submodule, imported when first asked for.
    * ``from home import *``: all that the ``__all__`` of `home` names; `home` is imported now.

    A name that is also a submodule's (``from .inner import inner as inner``) is imported now:
    if the submodule were imported later, it would take the name.

    Args:
      module: its ``__name__``.
      file: its ``__file__``.
      extra: what to install if a home is missing, as in ``"jax[tf]"``.
    """
    stub, _ = os.path.splitext(file)
    package = module if os.path.basename(stub) == "__init__" else module.rpartition(".")[0]
    homes: dict[str, tuple[str, str]] = {}
    public: set[str] = set()
    with open(stub + ".pyi", encoding="utf-8") as text:
        statements = ast.parse(text.read()).body
    for statement in statements:
        if not isinstance(statement, ast.ImportFrom):
            continue
        home = importlib.util.resolve_name("." * statement.level + (statement.module or ""), package)
        for name in statement.names:
            if name.name == "*":
                exported = importlib.import_module(home).__all__
                homes.update({n: (home, n) for n in exported})
                public.update(exported)
            else:
                homes[name.asname or name.name] = (home, name.name)
                if name.asname:
                    public.add(name.asname)

    def get(name: str) -> Any:
        place = homes.get(name)
        if place is None:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        try:
            value = _imported(*place, own=place[0] == module)
        except ModuleNotFoundError as error:
            if not extra or not f"{place[0]}.".startswith(f"{error.name}."):
                raise
            raise ModuleNotFoundError(
                f"{module} needs an extra: install {extra} ({error})", name=error.name
            ) from None
        sys.modules[module].__dict__[name] = value
        return value

    for name, (home, _) in homes.items():
        if home == f"{module}.{name}":
            get(name)
    names = sorted(homes)
    return get, lambda: names, sorted(n for n in public if not n.startswith("_"))


def _imported(home: str, name: str, own: bool) -> Any:
    """What ``from home import name`` gives; `own`: from the module that asks, so that it must be a submodule."""
    if own:
        return importlib.import_module(f"{home}.{name}")
    return getattr(__import__(home, fromlist=[name]), name)


def attach(module: str, homes: Mapping[str, Sequence[str]], submodules: Sequence[str] = ()) -> Attached:
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
