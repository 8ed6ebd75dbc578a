from bedrax.xla_backend import effects_barrier as _effects_barrier

wait_for_tokens = _effects_barrier
