from .explaining import explain as explain
from .explicit import (
    ForbiddenCollectiveError,
    ShardingTypeError,
    auto_axes as auto_axes,
    explicit_axes as explicit_axes,
    no_collectives as no_collectives,
    reshard as reshard,
    sharding_rules,
)
from .mapping import shard_map as shard_map, smap as smap
from .pmapping import pmap as pmap
from .primitives import shard_map_p as shard_map_p
from .meshes import (
    AbstractDevice as AbstractDevice,
    AbstractMesh as AbstractMesh,
    AxisType as AxisType,
    Mesh as Mesh,
    get_abstract_mesh as get_abstract_mesh,
    get_mesh as get_mesh,
    set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
)
from .specs import ManualAxisType as ManualAxisType, PartitionSpec as PartitionSpec, UnreducedKind as UnreducedKind
