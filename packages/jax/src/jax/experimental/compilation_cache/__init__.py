"""`jax.experimental.compilation_cache`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {}, ("compilation_cache",))

if TYPE_CHECKING:
    from jax.experimental.compilation_cache import compilation_cache as compilation_cache
