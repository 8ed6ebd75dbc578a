"""`jax.experimental.key_reuse`: nothing of it is offered."""
