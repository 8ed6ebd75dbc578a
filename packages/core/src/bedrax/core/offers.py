"""The offers of packages above: functions, options, methods of arrays, executors. Their modules are imported at first use.

A package names its offers in its metadata, as entry points of the group `bedrax`. So an offer is found if its package is
installed; no import decides it. The metadata are read at the first purpose that is not known otherwise:
the import of a package registers its offers (`offer`), which also serves sources without metadata, and a face that
needs all packages registers all offers (`name_all`).

`docs/architecture.md` lists the purposes, and what happens if nothing is offered.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

_targets: dict[str, str] = {}  # purpose -> "module", or "module:function"
_all: Mapping[str, str] | None = None  # the offers of all packages, from a face


def offer(purpose: str, target: str) -> None:
    """Register a module, or a function of a module (``"module:function"``), for `purpose`."""
    _targets[purpose] = target


def name_all(targets: Mapping[str, str]) -> None:
    """Register the offers of all packages, in place of those in the metadata, which take time to read."""
    global _all
    _all = targets


def installed() -> Mapping[str, str]:
    """Return the offers of the installed packages: purpose -> target."""
    return _in_metadata() if _all is None else _all


@functools.cache
def _in_metadata() -> Mapping[str, str]:
    import importlib.metadata  # 30 ms, which a process with a face does not need

    return {entry.name: entry.value for entry in importlib.metadata.entry_points(group="bedrax")}


def target(purpose: str) -> str | None:
    """Return the target of `purpose`; None if no package offers one."""
    return _targets.get(purpose) or installed().get(purpose)


def offered(purpose: str, otherwise: Callable[..., Any] | None = None) -> Callable[..., Any] | None:
    """Return the function for `purpose`; `otherwise` if there is none."""
    found = target(purpose)
    if found is None:
        return otherwise
    module, _, name = found.partition(":")
    return getattr(importlib.import_module(module), name)


def shown(kind: str) -> Callable[[Any], str | None]:
    """Return the method `_repr_html_` of a class, by which notebooks show its objects.

    Args:
      kind: of the objects: ``"array"``, ``"program"``, ...

    Returns:
      A method. It returns None, so that a notebook shows the text, if nothing is offered or the text is better.
    """

    def _repr_html_(self: Any) -> str | None:
        show = offered("html of values")
        return None if show is None else show(kind, self)

    return _repr_html_


def of_kind(kind: str) -> dict[str, str]:
    """Return the offers whose purposes are `kind`, a space and a name: name -> target."""
    start = kind + " "
    known = {**installed(), **_targets}
    return {purpose.removeprefix(start): found for purpose, found in known.items() if purpose.startswith(start)}
