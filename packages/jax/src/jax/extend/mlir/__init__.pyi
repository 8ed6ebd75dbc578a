from bedrax.xla_backend.door.mlir import (
    deserialize_portable_artifact as deserialize_portable_artifact,
    hlo_to_stablehlo as hlo_to_stablehlo,
    refine_polymorphic_shapes as refine_polymorphic_shapes,
    serialize_portable_artifact as serialize_portable_artifact,
)
from bedrax.extend.mlir_rules import lower_with_sharding_in_types as lower_with_sharding_in_types
from . import dialects as dialects, ir as ir, passmanager as passmanager
