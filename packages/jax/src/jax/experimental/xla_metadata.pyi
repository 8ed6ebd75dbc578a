from bedrax.extend.unsupported import set_xla_metadata as set_xla_metadata
