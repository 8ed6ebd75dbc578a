"""XLA for Bedrax: devices, arrays, lowering to StableHLO, compilation and dispatch.

Where this package is installed, XLA is the executor of `bedrax.core`, unless the user chose another one.
"""

from __future__ import annotations

from typing import Final

from bedrax.core import executors, offers
from bedrax.core.jitting import jit
from bedrax.xla_backend import array as _array
from bedrax.xla_backend.clients import (
    clear_backends,
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
)
from bedrax.xla_backend.compile import effects_barrier
from bedrax.xla_backend.dispatch import XlaExecutor, clear_caches
from bedrax.xla_backend.dlpack import from_dlpack
from bedrax.xla_backend.door.runtime import JaxRuntimeError
from bedrax.xla_backend.host import Shard
from bedrax.xla_backend.placement import (
    block_until_ready,
    device_get,
    device_put,
    device_put_replicated,
    device_put_sharded,
    make_array_from_callback,
    make_array_from_single_device_arrays,
    with_sharding_constraint,
)
from bedrax.xla_backend.sharding import NamedSharding, Sharding, SingleDeviceSharding, make_mesh

_array.install()
executor: Final = XlaExecutor()
executors.provide(executor)
offers.offer("sharding of types", "bedrax.xla_backend.sharding:of_type")
offers.offer("lowering of partial sums", "bedrax.xla_backend.lowering.partial_sums:lower")
offers.offer("constants in parts", "bedrax.xla_backend.lowering.partial_sums:constant_in_parts")
offers.offer("sharding over a mesh", "bedrax.xla_backend.sharding:NamedSharding")

__all__ = [
    "JaxRuntimeError",
    "NamedSharding",
    "Shard",
    "Sharding",
    "SingleDeviceSharding",
    "XlaExecutor",
    "block_until_ready",
    "clear_backends",
    "clear_caches",
    "default_backend",
    "device_count",
    "device_get",
    "device_put",
    "device_put_replicated",
    "device_put_sharded",
    "devices",
    "effects_barrier",
    "executor",
    "from_dlpack",
    "jit",
    "local_device_count",
    "local_devices",
    "make_array_from_callback",
    "make_array_from_single_device_arrays",
    "make_mesh",
    "process_count",
    "process_index",
    "process_indices",
    "with_sharding_constraint",
]
