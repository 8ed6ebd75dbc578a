"""Programs over many devices: `meshes` and `specs` as data."""

import os

import bedrax.numpy_backend  # noqa: F401  # it evaluates, unless a backend of a higher rank is installed
from bedrax.core import offers, source
from bedrax.core.lazy import attach

offers.offer("manual axis type", "bedrax.parallel.sums:manual_axis_type_of")
offers.offer("split by manual axes", "bedrax.parallel.sums:split_by_manual")
offers.offer("moves of partial sums", "bedrax.parallel.exchanges:move")
offers.offer("results with partial sums", "bedrax.parallel.exchanges:result")
offers.offer("operands in parts", "bedrax.parallel.exchanges:in_parts")
offers.offer("type of a block", "bedrax.parallel.mapping:type_of_block")
offers.offer("type of a whole array", "bedrax.parallel.mapping:type_of_whole")
offers.offer("types with splits", "bedrax.parallel.explicit:typed")
offers.offer("error of splits", "bedrax.parallel.explicit:ShardingTypeError")
source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        ".explaining": ("explain",),
        ".explicit": ("auto_axes", "explicit_axes", "no_collectives", "reshard"),
        ".mapping": ("shard_map", "smap"),
        ".pmapping": ("pmap",),
        ".primitives": ("shard_map_p",),
        ".meshes": (
            "AbstractDevice",
            "AbstractMesh",
            "AxisType",
            "Mesh",
            "get_abstract_mesh",
            "get_mesh",
            "set_mesh",
            "use_abstract_mesh",
        ),
        ".specs": ("ManualAxisType", "PartitionSpec", "UnreducedKind"),
    },
    hidden={".explicit": ("ForbiddenCollectiveError", "ShardingTypeError", "sharding_rules")},
)
