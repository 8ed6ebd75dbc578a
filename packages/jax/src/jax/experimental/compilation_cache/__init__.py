"""`jax.experimental.compilation_cache`: nothing of it is offered; the cache is set by the options `jax_compilation_cache_*`."""
