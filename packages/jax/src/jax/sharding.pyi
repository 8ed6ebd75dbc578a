from bedrax.xla_backend.sharding import (
    AbstractDevice as AbstractDevice, AbstractMesh as AbstractMesh, AxisType as AxisType, Mesh as Mesh,
    NamedSharding as NamedSharding, PartitionSpec as PartitionSpec, Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding, get_abstract_mesh as get_abstract_mesh,
    get_mesh as get_mesh, make_single_device_sharding as make_single_device_sharding, set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
)  # fmt: skip
