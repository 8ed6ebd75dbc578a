from bedrax.xla_backend import effects_barrier as wait_for_tokens
