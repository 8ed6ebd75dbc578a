"""`jax.ops`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.numpy.segments": (
        "segment_max", "segment_min", "segment_prod", "segment_sum",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.numpy.segments import (
        segment_max as segment_max, segment_min as segment_min, segment_prod as segment_prod,
        segment_sum as segment_sum,
    )  # fmt: skip
