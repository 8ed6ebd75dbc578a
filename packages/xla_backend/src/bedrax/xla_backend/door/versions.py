"""Differences between the supported versions of jaxlib, and substitutes for absent features.

Each row of `CAPABILITIES` is one capability: its test, and the message if it is absent. No other module
of the packages compares versions or reads an attribute of jaxlib that a supported version lacks.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from jaxlib import _jax
from jaxlib.version import __version__ as jaxlib_version

OLDEST, NEWEST = "0.10.2", "0.12.0.1"


def parts(version: str) -> tuple[int, ...]:
    """The numbers of a version: ``"0.12.0.1"`` is ``(0, 12, 0, 1)``."""
    return tuple(int(part) for part in version.split("+")[0].split(".") if part.isdigit())


class Capability(NamedTuple):
    """A feature that some supported version of jaxlib lacks."""

    present: Callable[[], bool]
    otherwise: str  # the message if it is absent
    replaces: tuple[str, ...] = ()  # the rows of the door's table (tools/door.py) that it accounts for


def _has(owner: Any, name: str) -> Callable[[], bool]:
    return lambda: hasattr(owner, name)


def _handlers_take_skip_checks() -> bool:
    return "_skip_checks" in (_jax.array_result_handler.__doc__ or "")


_Build = _jax.ExecutableBuildOptions
_BUILD = "jaxlib._jax.ExecutableBuildOptions"
_NO_EFFORT = "this jaxlib has levels of effort only: {}"

CAPABILITIES: dict[str, Capability] = {
    "exec_time_optimization_effort": Capability(
        _has(_Build, "exec_time_optimization_effort"),
        _NO_EFFORT.format("jax_optimization_level"),
        (f"attribute {_BUILD}.exec_time_optimization_effort",),
    ),
    "memory_fitting_effort": Capability(
        _has(_Build, "memory_fitting_effort"),
        _NO_EFFORT.format("jax_memory_fitting_level"),
        (f"attribute {_BUILD}.memory_fitting_effort",),
    ),
    "result handlers with _skip_checks": Capability(
        _handlers_take_skip_checks,
        "handlers of results check nothing, and take no such argument",
        ("keyword jaxlib._jax.array_result_handler(_skip_checks=)",),
    ),
    "checks of parts take the array": Capability(
        lambda: parts(jaxlib_version) < (0, 11), "C++ passes the parts, the sharding and the type alone"
    ),
    "export of profile data": Capability(
        lambda: hasattr(importlib.import_module("jaxlib._profiler"), "export_to_xprof"),
        "this jaxlib writes profiles of sessions only: give the ProfileSession, or keep it",
    ),
    "mutual TLS among processes": Capability(
        lambda: "mtls_cert_file" in (_jax.get_distributed_runtime_client.__doc__ or ""),
        "the coordination service of this jaxlib has no mutual TLS, jaxlib 0.12 has",
    ),
    "chlo.top_k in any order": Capability(
        lambda: hasattr(importlib.import_module("jaxlib.mlir.dialects.chlo").TopKOp, "is_stable"),
        "equal elements always keep their order, which is one of those allowed",
    ),
}


@functools.cache
def has(name: str) -> bool:
    """Whether the installed jaxlib has a capability."""
    return CAPABILITIES[name].present()


def missing(name: str) -> str | None:
    """The message of an absent capability; None if it is present."""
    return None if has(name) else CAPABILITIES[name].otherwise


def warn_if_untried() -> None:
    """Warn if the installed jaxlib is newer than the newest tested version."""
    if parts(jaxlib_version) > parts(NEWEST):
        warnings.warn(
            f"jaxlib {jaxlib_version} is newer than {NEWEST}, the newest version that this release of Bedrax was tested "
            "with; if something fails, install that one",
            UserWarning,
            stacklevel=2,
        )


warn_if_untried()
