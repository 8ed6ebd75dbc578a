"""The fields of jaxlib's arrays and shardings that only C++ and this package use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np
from jaxlib import _jax

from bedrax.xla_backend.door import versions

ArrayImpl: Any = _jax.ArrayImpl

sharding_of: Final = attrgetter("_sharding")
is_committed: Final = attrgetter("_committed")
parts_of: Final = attrgetter("_arrays")  # single-device arrays, in the order of the sharding
known_value: Final = attrgetter("_npy_value")  # the elements on the host, or None
replicated_part: Final = attrgetter("_fully_replicated_shard")  # a method
device_of: Final = attrgetter("_device")  # of a sharding over one device
wait_for: Any = ArrayImpl.block_until_ready
devices_of: Final = attrgetter("_internal_device_list")  # of any sharding


def any_layout_of(x: Any) -> Any:
    """jaxlib's layout of an array, or None if it was deleted: to read the field would end the process."""
    return None if x.is_deleted() else x._pjrt_layout


def layout_of(x: Any) -> Any:
    """jaxlib's layout of an array, or None if it is row-major, or was deleted."""
    ndim = x.aval.ndim
    found = None if ndim < 2 else any_layout_of(x)
    if found is None:
        return None
    return None if tuple(found._xla_layout().minor_to_major()) == tuple(range(ndim - 1, -1, -1)) else found


def make_array(aval: Any, sharding: Any, parts: Sequence[Any], committed: bool) -> Any:
    """An array from its shards. The shards are not checked."""
    return ArrayImpl(aval, sharding, list(parts), committed=committed, _skip_checks=True)


def check_of_parts(check: Callable[..., Any]) -> Any:
    """The method that C++ calls when an array is made of its shards.

    Args:
      check: ``check(parts, sharding, type)`` returns the shards in the order of the sharding, or raises.
    """
    if versions.has("checks of parts take the array"):
        return lambda self, parts, sharding, aval: check(parts, sharding, aval)
    return check


def keep_value(x: Any, value: np.ndarray) -> None:
    """Store the elements of an array on the host."""
    x._npy_value = value


def copy_to_host(x: Any) -> tuple[np.ndarray, bool]:
    """The elements of an array on one device, and whether they are a copy (not a view of its memory)."""
    return x._single_device_array_to_np_array_did_copy()


def start_copy_to_host(x: Any) -> None:
    """Begin `copy_to_host`."""
    x._copy_single_device_array_to_host_async()


def copied(x: Any, sharding: Any, always: bool) -> Any:
    """An array on other devices. If the array is there already, a copy is made only if `always` is true."""
    how = _jax.ArrayCopySemantics.ALWAYS_COPY if always else _jax.ArrayCopySemantics.REUSE_INPUT
    return _jax.batched_copy_array_to_devices_with_sharding([x], [devices_of(sharding)], [sharding], [how])[0]
