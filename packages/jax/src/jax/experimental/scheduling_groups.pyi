from bedrax.extend.unsupported import (
    attr_get as attr_get, scheduling_group as scheduling_group, xla_metadata_call as xla_metadata_call,
)  # fmt: skip
