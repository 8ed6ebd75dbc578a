from bedrax.xla_backend.dlpack import from_dlpack as from_dlpack, is_supported_dtype as is_supported_dtype
