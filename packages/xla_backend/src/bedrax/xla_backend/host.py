"""NumPy values and shards of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bedrax.core.array import Array
from bedrax.core.codes import coded
from bedrax.core.typing import ArrayLike
from bedrax.xla_backend import failures, turns
from bedrax.xla_backend.door.arrays import (
    copy_to_host,
    device_of,
    keep_value,
    known_value,
    parts_of,
    replicated_part,
    sharding_of,
    wait_for,
)
from bedrax.xla_backend.door.runtime import JaxRuntimeError
from bedrax.xla_backend.sharding import SingleDeviceSharding, axes_of


class Shard:
    """The shard of an array on one device.

    Attributes:
      device: the device that holds the shard.
      index: the slices of the global array that the shard holds.
      replica_id: 0 for the first device that holds these slices, then 1, ...
      data: the shard, as an array on that device; None on devices of other processes.

    Examples:

      >>> [shard] = jnp.arange(3).addressable_shards
      >>> shard.index, shard.replica_id
      ((slice(None, None, None),), 0)
      >>> shard.data
      Array([0, 1, 2], dtype=int32)
    """

    __slots__ = ("_data", "_replica_id", "_sharding", "device", "index")

    def __init__(self, device: Any, index: tuple[slice, ...], replica_id: int, data: Array | None = None) -> None:
        self.device: Any = device
        self.index: Any = index
        self._replica_id = replica_id
        self._data = data

    @property
    def replica_id(self) -> Any:
        return self._replica_id

    @property
    def data(self) -> Any:
        return self._data

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self._replica_id}, data={self._data})"


def check_alive(x: Array) -> None:
    """Raise RuntimeError if an array was deleted or donated."""
    if x.is_deleted():
        raise RuntimeError(
            coded(
                "BX-DELETED",
                f"an array of type {x.aval.str_short()} is used after it was deleted or donated;"
                " use the result of the function that it was donated to (donate_argnums), or do not donate it",
            )
        )


def host_value(x: Array) -> np.ndarray:
    """The elements as a read-only `numpy.ndarray`. Waits until they are computed.

    Raises:
      RuntimeError: the array was deleted or donated, or has shards in other processes.
    """
    value = known_value(x)
    if value is not None:
        return value
    check_alive(x)
    turns.stop_at_the_end()
    sharding = sharding_of(x)
    if type(sharding) is SingleDeviceSharding:
        value, copied = _copied(x)
        value.flags.writeable = False
        if copied:  # otherwise it is a view of the buffer, and a reference to it would prevent donation
            keep_value(x, value)
        return value
    if sharding.is_fully_replicated:
        value, _ = _copied(replicated_part(x)())
    else:
        if not sharding.is_fully_addressable:
            raise RuntimeError(
                f"the array of type {x.aval.str_short()} has parts in other processes, so its value is not known here;"
                " x.addressable_shards are the parts of this process,"
                " jax.experimental.multihost_utils.process_allgather(x) collects all"
            )
        value = np.empty(x.aval.shape, x.aval.dtype)
        parts = sharding.partial and sharding.spec.unreduced
        # XLA's compiler leaves arrays without elements whole.
        for shard in () if not value.size else addressable_shards(x) if not parts else _combined(x):
            if shard.replica_id == 0:
                value[shard.index] = shard.data if parts else host_value(shard.data)
    value.flags.writeable = False
    keep_value(x, value)
    return value


_COMBINE: dict[str, Callable[..., Any]] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def _combined(x: Array) -> list[Shard]:
    """The blocks of an array that is partial sums (or of another kind), combined on the host."""
    spec, mesh = sharding_of(x).spec, sharding_of(x).mesh
    combine = _COMBINE[spec.unreduced_kind.name]
    position = {device: place for place, device in np.ndenumerate(mesh.devices)}
    along = [i for i, name in enumerate(mesh.axis_names) if name in spec.unreduced]
    split = [i for i, name in enumerate(mesh.axis_names) if name in {a for e in spec for a in axes_of(e)}]
    found: dict[Any, Shard] = {}
    seen = set()
    for shard in addressable_shards(x):
        place = position[shard.device]
        block, part = tuple(place[i] for i in split), tuple(place[i] for i in along)
        if (block, part) in seen:
            continue  # a copy
        seen.add((block, part))
        value = host_value(shard.data)
        if block in found:
            found[block]._data = combine(found[block].data, value)
        else:
            found[block] = Shard(shard.device, shard.index, 0, value)
    return list(found.values())


def _copied(x) -> tuple:
    try:
        return copy_to_host(x)
    except JaxRuntimeError as error:
        failures.add_notes(error)
        raise


def block_until_ready(x: Array) -> Array:
    """Wait until an array is computed. Returns the array."""
    try:
        return wait_for(x)
    except JaxRuntimeError as error:
        failures.add_notes(error)
        raise


def _numbered(x) -> dict:
    """Per device, the slices of the global array that it holds, and the index of this replica."""
    copies: dict[Any, Any] = {}
    found = {}
    for device, index in sharding_of(x).devices_indices_map(x.aval.shape).items():
        key = tuple((s.start, s.stop) for s in index)
        copies[key] = number = copies.get(key, -1) + 1
        found[device] = index, number
    return found


def addressable_shards(x: Array) -> list[Shard]:
    """The shards on this process's devices."""
    check_alive(x)
    sharding = sharding_of(x)
    if type(sharding) is SingleDeviceSharding:
        return [Shard(device_of(sharding), (slice(None),) * len(x.aval.shape), 0, x)]
    numbered = _numbered(x)
    # On a single device, the shard of a program's result is the result itself, with any class of sharding.
    devices = [sharding_of(part)._device_assignment[0] for part in parts_of(x)]
    return [Shard(device, *numbered[device], part) for device, part in zip(devices, parts_of(x), strict=True)]


def global_shards(x: ArrayLike) -> list[Shard]:
    """The shards on all devices. Shards of other processes have no data."""
    mine = {s.device: s for s in addressable_shards(x)}
    if x.is_fully_addressable:
        return list(mine.values())
    return [mine.get(device) or Shard(device, *where) for device, where in _numbered(x).items()]
