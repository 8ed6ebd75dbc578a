"""`jax._src.interpreters`: an empty module; Flax imports it."""
