"""`jax.sharding`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.xla_backend.sharding": (
        "AbstractDevice", "AbstractMesh", "AxisType", "Mesh", "NamedSharding", "PartitionSpec", "Sharding",
        "SingleDeviceSharding", "get_abstract_mesh", "get_mesh", "make_single_device_sharding", "set_mesh",
        "use_abstract_mesh",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.xla_backend.sharding import (
        AbstractDevice as AbstractDevice, AbstractMesh as AbstractMesh, AxisType as AxisType, Mesh as Mesh,
        NamedSharding as NamedSharding, PartitionSpec as PartitionSpec, Sharding as Sharding,
        SingleDeviceSharding as SingleDeviceSharding, get_abstract_mesh as get_abstract_mesh,
        get_mesh as get_mesh, make_single_device_sharding as make_single_device_sharding,
        set_mesh as set_mesh, use_abstract_mesh as use_abstract_mesh,
    )  # fmt: skip
