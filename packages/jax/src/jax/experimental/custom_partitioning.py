"""`jax.experimental.custom_partitioning`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.lax.primitives.calls": ("custom_partitioning_p",),
        "bedrax.parallel.partitioning": ("custom_partitioning",),
        "bedrax.parallel.shardy_rules": ("BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule"),
    },
)
