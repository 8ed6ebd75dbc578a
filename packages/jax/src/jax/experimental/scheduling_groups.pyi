from bedrax.extend.metadata import scheduling_group as scheduling_group, xla_metadata_call as xla_metadata_call
from bedrax.extend.unsupported import attr_get as attr_get
from bedrax.lax.primitives.calls import xla_metadata_call_p as xla_metadata_call_p
