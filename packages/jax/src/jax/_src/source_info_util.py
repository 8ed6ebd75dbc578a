"""`jax._src.source_info_util`: a name that BrainState uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.extend.source_info": ("current",)})
