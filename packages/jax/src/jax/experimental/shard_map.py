"""`jax.experimental.shard_map`: nothing of it is offered."""
