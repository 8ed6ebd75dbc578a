from bedrax.extend.metadata import set_xla_metadata as set_xla_metadata
