"""Modules whose names are imported on first use (PEP 562), declared in a table of names and their homes."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

# Name with its module, or module -> text of the DeprecationWarning when it is looked up, or imported.
deprecated: dict[str, str] = {}

# Name with its module -> its replacement, which the error of the removed name states.
replaced: dict[str, str] = {}

Names = Mapping[str, "tuple[str, ...] | str"]
_NONE: Mapping[str, Any] = {}


def attach(
    module: str,
    names: Names,
    *,
    renamed: Mapping[str, Mapping[str, str]] = _NONE,
    hidden: Names = _NONE,
    extra: str = "",
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__, __dir__, __all__`` for a module whose names have homes in other modules.

    A home is the name of a module, or a relative one (``".inner"``). Each name is imported at its first lookup.
    The home ``"."`` is the package: its names are submodules. The names ``"*"`` are all names in the
    ``__all__`` of the home, which is imported now. If two homes have the same name, the later one is taken.

    A name that is also a submodule's (``".inner": ("inner",)``) is imported now: if the submodule were imported
    later, it would take the name.

    `tools/face.py` writes the stub (``.pyi``) of the module from its call of this function.

    Args:
      module: its ``__name__``.
      names: home -> names. Those that do not start with an underscore are in ``__all__``.
      renamed: home -> {name in this module: name in the home}.
      hidden: home -> names that are found and are not in ``__all__``.
      extra: the package to install if a home is missing, as in ``"bedrax[tf]"``.

    Raises (at a lookup):
      AttributeError: the module has no such name, or it is a submodule that needs an absent library.
      ModuleNotFoundError: a home needs `extra`.
    """
    package = vars(sys.modules[module])["__package__"]

    def located(home: str) -> str:
        return importlib.util.resolve_name(home, package) if home[0] == "." else home

    places: dict[str, str] = {}
    originals: dict[str, str] = {}
    for home, some in names.items():
        home = located(home)
        places.update(dict.fromkeys(importlib.import_module(home).__all__ if some == "*" else some, home))
    for home, pairs in renamed.items():
        places.update(dict.fromkeys(pairs, located(home)))
        originals.update(pairs)
    public = sorted([name for name in places if name[0] != "_"])
    for home, some in hidden.items():
        places.update(dict.fromkeys(some, located(home)))
    if module in deprecated:
        warnings.warn(deprecated[module], DeprecationWarning, stacklevel=3)  # the line that imports it

    def get(name: str) -> Any:
        if name not in places:
            instead = replaced.get(f"{module}.{name}")
            hint = f": it was removed; use {instead}" if instead else ""
            raise AttributeError(f"module '{module}' has no attribute '{name}'{hint}")
        home, original = places[name], originals.get(name, name)
        try:
            if home == module:
                value = importlib.import_module(f"{module}.{original}")
            else:
                value = getattr(__import__(home, fromlist=[original]), original)
        except ModuleNotFoundError as error:
            foreign = (error.name or "bedrax").partition(".")[0] not in ("bedrax", module.partition(".")[0])
            if home == module and (
                foreign or "needs an extra" in error.msg
            ):  # so it is not an attribute; `import` raises with the reason
                raise AttributeError(f"module '{module}' has no attribute '{name}': {error}") from None
            if not extra or not f"{home}.".startswith(f"{error.name}."):
                raise
            text = f"{module} needs an extra: install {extra} ({error})"
            raise ModuleNotFoundError(text, name=error.name) from None
        if (text := deprecated.get(f"{module}.{name}")) and home != module:
            warnings.warn(text, DeprecationWarning, stacklevel=2)  # each time: the name is not kept
        else:
            sys.modules[module].__dict__[name] = value
        return value

    for home in dict.fromkeys(places.values()):
        inside, _, name = home.rpartition(".")
        if inside == module and places.get(name) == home:
            get(name)
    return get, lambda: sorted(places), public
