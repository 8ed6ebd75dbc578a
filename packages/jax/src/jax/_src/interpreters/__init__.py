"""`jax._src.interpreters`: needed by Flax."""
