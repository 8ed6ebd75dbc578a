"""`jax.cloud_tpu_init`: nothing of it is offered."""
