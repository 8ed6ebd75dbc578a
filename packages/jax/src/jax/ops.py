"""`jax.ops`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__, {"bedrax.numpy.segments": ("segment_max", "segment_min", "segment_prod", "segment_sum")}
)
