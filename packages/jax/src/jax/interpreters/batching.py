"""`jax.interpreters.batching`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.extend.interpreters": (
        "axis_primitive_batchers", "bdim_at_front", "broadcast", "defbroadcasting", "defreducer",
        "defvectorized", "fancy_primitive_batchers", "moveaxis", "not_mapped", "primitive_batchers",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.extend.interpreters import (
        axis_primitive_batchers as axis_primitive_batchers, bdim_at_front as bdim_at_front,
        broadcast as broadcast, defbroadcasting as defbroadcasting, defreducer as defreducer,
        defvectorized as defvectorized, fancy_primitive_batchers as fancy_primitive_batchers,
        moveaxis as moveaxis, not_mapped as not_mapped, primitive_batchers as primitive_batchers,
    )  # fmt: skip
