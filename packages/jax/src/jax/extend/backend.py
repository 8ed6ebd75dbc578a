"""`jax.extend.backend`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.xla_backend.clients": (
        "backends", "clear_backends", "get_backend",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.xla_backend.clients import (
        backends as backends, clear_backends as clear_backends, get_backend as get_backend,
    )  # fmt: skip
