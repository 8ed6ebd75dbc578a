from bedrax.processes.colocated import is_prng_key_dtype as is_prng_key_dtype, make_callable as make_callable
