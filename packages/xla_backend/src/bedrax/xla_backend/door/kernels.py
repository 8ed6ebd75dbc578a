"""Compiled functions that XLA calls by name: jaxlib's and the user's."""

from __future__ import annotations

import os
import threading
from typing import Any

import jaxlib
from jaxlib import _jax, xla_client

from bedrax.pytree.engine import load_whole
from bedrax.xla_backend import platforms

_ready: set[str] = set()
_lock = threading.Lock()


def require(target: str) -> None:
    """Register the kernels of custom call `target` with XLA and initialize them, if jaxlib has them."""
    for platform in platforms.PLATFORMS.values():
        for prefix, library in platform.kernels.items():
            if target.startswith(prefix) and library not in _ready:
                with _lock:
                    if library not in _ready:
                        _load(library)
                        _ready.add(library)  # last: a thread that finds it here calls the kernels


def _load(library: str) -> None:
    module = load_whole(f"jaxlib.{library}")
    # The kernels that call LAPACK on the host need its functions first. gpu_rnn registers its own at import.
    for initialize in ("initialize", "initialize_hybrid_kernels"):
        getattr(getattr(module, "_lapack", module), initialize, lambda: None)()
    for platform, entries in getattr(module, "registrations", dict)().items():
        for name, value, api_version in entries:
            xla_client.register_custom_call_target(name, value, platform=platform, api_version=api_version)
    for name in getattr(module, "batch_partitionable_targets", list)():
        xla_client.register_custom_call_as_batch_partitionable(name)


def register_custom_call_target(name: str, fn: Any, platform: str, api_version: int, **options: Any) -> None:
    """Register a compiled function with XLA."""
    xla_client.register_custom_call_target(name, fn, platform, api_version, **options)


def register_custom_type(name: str, registration: Any, platform: str) -> None:
    """Register a type of compiled functions' states with XLA."""
    xla_client.register_custom_type(name, registration, platform)


def register_as_batch_partitionable(name: str) -> None:
    """Declare that a custom call acts on each element along leading axes."""
    xla_client.register_custom_call_as_batch_partitionable(name)


def include_directory() -> str:
    """The directory of the headers of XLA's foreign function interface."""
    return os.path.join(os.path.dirname(jaxlib.__file__), "include")


def custom_call_targets(platform: str) -> dict[Any, Any]:
    """Names of the registered custom calls of a platform."""
    return _jax.custom_call_targets(platform)
