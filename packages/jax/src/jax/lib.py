"""`jax.lib`: nothing of it is offered."""
