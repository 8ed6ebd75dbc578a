"""`jax.typing`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.core.types": (
        "ArrayLike", "DTypeLike",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.core.types import (
        ArrayLike as ArrayLike, DTypeLike as DTypeLike,
    )  # fmt: skip
