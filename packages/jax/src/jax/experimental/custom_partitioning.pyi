from bedrax.lax.primitives.calls import custom_partitioning_p as custom_partitioning_p
from bedrax.parallel.partitioning import custom_partitioning as custom_partitioning
from bedrax.parallel.shardy_rules import (
    BATCHING as BATCHING,
    ArrayMapping as ArrayMapping,
    CompoundFactor as CompoundFactor,
    SdyShardingRule as SdyShardingRule,
)
