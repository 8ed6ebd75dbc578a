"""`jax.dlpack`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.xla_backend.placement": (
        "from_dlpack", "is_supported_dtype",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.xla_backend.placement import (
        from_dlpack as from_dlpack, is_supported_dtype as is_supported_dtype,
    )  # fmt: skip
