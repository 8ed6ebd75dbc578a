"""`jax._src.state`: needed by Flax."""
