"""Programs over many devices: `meshes` and `specs` as data."""

import os

import bedrax.numpy_backend  # noqa: F401  # the default executor
from bedrax.core import offers, source
from bedrax.core.lazy import attach

offers.offer("manual axis type", "bedrax.parallel.specs:ManualAxisType")
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
