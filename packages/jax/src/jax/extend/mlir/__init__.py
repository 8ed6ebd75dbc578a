"""`jax.extend.mlir`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.xla_backend.jaxlib_door": (
        "deserialize_portable_artifact", "hlo_to_stablehlo", "refine_polymorphic_shapes",
        "serialize_portable_artifact",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES, (
    "dialects", "ir", "passmanager",
))  # fmt: skip

if TYPE_CHECKING:
    from bedrax.xla_backend.jaxlib_door import (
        deserialize_portable_artifact as deserialize_portable_artifact,
        hlo_to_stablehlo as hlo_to_stablehlo, refine_polymorphic_shapes as refine_polymorphic_shapes,
        serialize_portable_artifact as serialize_portable_artifact,
    )  # fmt: skip
    from jax.extend.mlir import dialects as dialects
    from jax.extend.mlir import ir as ir
    from jax.extend.mlir import passmanager as passmanager
