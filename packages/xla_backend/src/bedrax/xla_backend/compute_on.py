"""Where parts of a program are computed (`jax.experimental.compute_on`)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from bedrax import pytree
from bedrax.xla_backend import clients
from bedrax.xla_backend.sharding import Space

__all__ = ["compute_on", "compute_on2"]

_TYPES = ("device", "device_host", "tpu_sparsecore")


def _check(compute_type: str) -> None:
    if compute_type not in _TYPES:
        raise ValueError(f"compute_on knows the places {', '.join(map(repr, _TYPES))}, got {compute_type!r}")
    platform = clients.default_backend()
    if compute_type == "tpu_sparsecore" or (compute_type == "device_host" and platform != "cpu"):
        raise NotImplementedError(
            f"compute_on({compute_type!r}): programs run on the devices of one platform here, {platform!r}; leave it out, or"
            " call the host with jax.pure_callback"
        )


@contextlib.contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """Context manager and decorator: compute on the device (``"device"``) or on its host (``"device_host"``).

    Raises:
      NotImplementedError: the place is another one than the devices of the default platform. On CPU, host and device
        are the same.
    """
    _check(compute_type)
    yield


def compute_on2(
    f: Callable | None = None, *, compute_type: str, out_memory_spaces: Any, compiler_options: dict | None = None
) -> Callable:
    """Decorator form of `compute_on` that also says in which memory results are.

    Args:
      out_memory_spaces: only those of the device; others would be another place.
      compiler_options: only None; give them to `jax.jit`.
    """
    if f is None:
        options = dict(
            compute_type=compute_type, out_memory_spaces=out_memory_spaces, compiler_options=compiler_options
        )
        return functools.partial(compute_on2, **options)
    _check(compute_type)
    if any(space is not Space.Device for space in pytree.tree_leaves(out_memory_spaces)):
        raise NotImplementedError(f"compute_on2 leaves results in the device's memory, got {out_memory_spaces=}")
    if compiler_options:
        raise NotImplementedError("compute_on2 with compiler_options: give them to jax.jit")
    return f
