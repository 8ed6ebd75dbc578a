"""Unsupported names of `jax.experimental.pallas.mosaic_gpu`."""

from typing import TYPE_CHECKING, Any

from bedrax.extend.refused import names_of

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__, __all__ = names_of("jax.experimental.pallas.mosaic_gpu")
