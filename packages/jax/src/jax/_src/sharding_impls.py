"""`jax._src.sharding_impls`: jaxlib asks for it by name when it imports an array by DLPack."""

from bedrax.xla_backend.sharding import make_single_device_sharding
