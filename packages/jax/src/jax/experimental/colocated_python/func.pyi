from bedrax.processes.colocated import is_prng_key_dtype as is_prng_key_dtype
