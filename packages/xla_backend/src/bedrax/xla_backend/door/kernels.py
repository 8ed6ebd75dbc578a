"""Compiled functions that XLA calls by name: those of jaxlib, and those of users."""

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
    """Make the kernels behind custom call `target` known to XLA, and ready to be called, if jaxlib ships them."""
    for platform in platforms.PLATFORMS.values():
        for prefix, library in platform.kernels.items():
            if target.startswith(prefix) and library not in _ready:
                with _lock:
                    if library not in _ready:
                        _load(library)
                        _ready.add(library)  # last: who finds it here calls the kernels


def _load(library: str) -> None:
    module = load_whole(f"jaxlib.{library}")
    # The kernels that call LAPACK on the host need its functions first; gpu_rnn registers its own when it is imported.
    for initialize in ("initialize", "initialize_hybrid_kernels"):
        getattr(getattr(module, "_lapack", module), initialize, lambda: None)()
    for platform, entries in getattr(module, "registrations", dict)().items():
        for name, value, api_version in entries:
            xla_client.register_custom_call_target(name, value, platform=platform, api_version=api_version)
    for name in getattr(module, "batch_partitionable_targets", list)():
        xla_client.register_custom_call_as_batch_partitionable(name)


def register_custom_call_target(name: str, fn: Any, platform: str, api_version: int, **options: Any) -> None:
    """Make a compiled function known to XLA."""
    xla_client.register_custom_call_target(name, fn, platform, api_version, **options)


def register_custom_type(name: str, registration: Any, platform: str) -> None:
    """Make a type of compiled functions' states known to XLA."""
    xla_client.register_custom_type(name, registration, platform)


def register_as_batch_partitionable(name: str) -> None:
    """Say that a custom call acts on each element along leading axes."""
    xla_client.register_custom_call_as_batch_partitionable(name)


def include_directory() -> str:
    """Where the headers of XLA's foreign function interface are."""
    return os.path.join(os.path.dirname(jaxlib.__file__), "include")


def custom_call_targets(platform: str) -> dict[Any, Any]:
    """Names of the custom calls registered for a platform."""
    return _jax.custom_call_targets(platform)
