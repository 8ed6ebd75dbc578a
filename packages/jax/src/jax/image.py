"""`jax.image`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.numpy.image": (
        "ResizeMethod", "resize", "scale_and_translate",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.numpy.image import (
        ResizeMethod as ResizeMethod, resize as resize, scale_and_translate as scale_and_translate,
    )  # fmt: skip
