from bedrax.parallel import (
    AbstractDevice as AbstractDevice,
    AbstractMesh as AbstractMesh,
    AxisType as AxisType,
    ManualAxisType as ManualAxisType,
    Mesh as Mesh,
    UnreducedKind as UnreducedKind,
    PartitionSpec as PartitionSpec,
    auto_axes as auto_axes,
    explicit_axes as explicit_axes,
    get_abstract_mesh as get_abstract_mesh,
    get_mesh as get_mesh,
    no_collectives as no_collectives,
    reshard as reshard,
    set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
)
from bedrax.xla_backend.sharding import (
    NamedSharding as NamedSharding,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
    make_single_device_sharding as make_single_device_sharding,
)
