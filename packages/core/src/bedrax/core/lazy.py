"""Modules whose names are imported on first use (PEP 562), declared in the stub that type checkers read."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

# Name with its module, or module -> text of the DeprecationWarning when it is looked up, or imported.
deprecated: dict[str, str] = {}


def attach_stub(
    module: str, file: str, extra: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__, __dir__, __all__`` for a module whose names its stub (``.pyi``) lists.

    The stub consists of imports, with the same meaning as for a type checker:

    * ``from home import name as name``: a public name, imported from `home` at first use.
      Without ``as`` it is found as well, but is not in ``__all__``.
    * ``from . import inner as inner``: a submodule, imported at first use.
    * ``from home import *``: all that the ``__all__`` of `home` names; `home` is imported now.
    * ``local = name``: one of these under another name, which is public.

    Examples for docstrings are in the text file (``.txt``) of the same name, see `read_examples`.

    A name that is also a submodule's (``from .inner import inner as inner``) is imported now:
    if the submodule were imported later, it would take the name.

    Args:
      module: its ``__name__``.
      file: its ``__file__``.
      extra: the package to install if a home is missing, as in ``"jax[tf]"``.
    """
    stub, _ = os.path.splitext(file)
    package = module if os.path.basename(stub) == "__init__" else module.rpartition(".")[0]
    places, public = _read(stub + ".pyi", package)
    examples = read_examples(stub + ".txt")
    if module in deprecated:
        warnings.warn(deprecated[module], DeprecationWarning, stacklevel=3)  # the line that imports it
    if sys.modules[module].__doc__ is None:
        sys.modules[module].__doc__ = f"`{module}`: the public names, from the layers that own them."

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        home, original = places[name].split()
        try:
            if home == module:
                value = importlib.import_module(f"{module}.{original}")
            else:
                value = getattr(__import__(home, fromlist=[original]), original)
        except ModuleNotFoundError as error:
            foreign = (error.name or "bedrax").partition(".")[0] not in ("bedrax", module.partition(".")[0])
            if home == module and (
                foreign or "needs an extra" in error.msg
            ):  # so it is no attribute; `import` raises with the reason
                raise AttributeError(f"module '{module}' has no attribute '{name}': {error}") from None
            if not extra or not f"{home}.".startswith(f"{error.name}."):
                raise
            text = f"{module} needs an extra: install {extra} ({error})"
            raise ModuleNotFoundError(text, name=error.name) from None
        ours = not module.startswith("bedrax.") and getattr(value, "__qualname__", None) == name
        _present(value, module if ours else "", examples.get(name) or examples.get(getattr(value, "__name__", ""), ""))
        if (text := deprecated.get(f"{module}.{name}")) and home != module:
            warnings.warn(text, DeprecationWarning, stacklevel=2)  # each time: the name is not kept
        else:
            sys.modules[module].__dict__[name] = value
        return value

    for home in dict.fromkeys([place.split()[0] for place in places.values()]):
        inside, _, name = home.rpartition(".")
        if inside == module and places.get(name, "").startswith(f"{home} "):
            get(name)
    return get, sorted(places).copy, [n for n in sorted(public) if n[0] != "_"]


def _present(value: Any, module: str, example: str) -> None:
    """Give functions and classes of Bedrax the (first) module where users find them, and an example."""
    if str(getattr(value, "__module__", "")).partition(".")[0] not in ("bedrax", module.partition(".")[0] or "jax"):
        return  # another library's
    with contextlib.suppress(AttributeError, TypeError):  # those of C++
        if example and ">>> " not in (text := inspect.cleandoc(value.__doc__ or "")):
            value.__doc__ = f"{text}\n\nExamples:\n\n{example}".lstrip()
        if module and str(getattr(value, "__module__", "")).startswith("bedrax."):
            value.__module__ = module


def read_examples(path: str) -> dict[str, str]:
    """Return the doctest after each line ``== name`` of a file; the text before the first name precedes each."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as text:
        start, *parts = re.split(r"^== (\w+)\n", text.read(), flags=re.MULTILINE)
    indented = [f"  {start.lstrip()}{example.strip()}".replace("\n", "\n  ") for example in parts[1::2]]
    return dict(zip(parts[::2], indented))


_LEFT_OUT = re.compile(r'"""(?s:.*?)"""|#[^\n]*')
_STATEMENT = re.compile(r"from\s+(\.*)([\w.]*)\s+import\s+(?:\(([^()]*)\)|([^\n()]+))|(\w+)\s*=\s*(\w+)|(\S)")


def _read(stub: str, package: str) -> tuple[dict[str, str], set[str]]:
    """Return the names of a stub: the home of each ("module name"), and the public ones."""
    places: dict[str, str] = {}  # strings, not pairs: the garbage collector counts tuples
    public: set[str] = set()
    with open(stub, encoding="utf-8") as file:
        text = _LEFT_OUT.sub(lambda found: "\n" * found[0].count("\n"), file.read())
    for found in _STATEMENT.finditer(text):  # `ast` would take five times as long at every import of a package
        dots, module, several, some, local, name, other = found.groups()
        if other:
            line = text.count("\n", 0, found.start()) + 1
            raise SyntaxError(f"{stub}:{line}: a stub that is attached holds imports only")
        if local:
            places[local] = places[name]
            public.add(local)
            continue
        home = importlib.util.resolve_name(dots + module, package)
        for entry in (several or some).split(","):
            match entry.split():
                case ["*"]:
                    exported = importlib.import_module(home).__all__
                    places.update((n, f"{home} {n}") for n in exported)
                    public.update(exported)
                case [name, "as", local]:
                    places[local] = f"{home} {name}"
                    public.add(local)
                case [name]:
                    places[name] = f"{home} {name}"
    return places, public
