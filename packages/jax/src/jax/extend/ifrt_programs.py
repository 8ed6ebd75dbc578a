"""`jax.extend.ifrt_programs`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.xla_backend.jaxlib_door": (
        "ifrt_programs",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.xla_backend.jaxlib_door import (
        ifrt_programs as ifrt_programs,
    )  # fmt: skip
