"""`jax.interpreters.pxla`: nothing of it is offered."""
