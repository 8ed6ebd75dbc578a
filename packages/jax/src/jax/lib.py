"""`jax.lib`: an empty module."""
