"""`jax._src.interpreters`: Flax imports it, and nothing of it."""
