"""`jax._src.dispatch`: needed by Equinox (wait_for_tokens)."""

from bedrax.xla_backend import (
    effects_barrier as wait_for_tokens,
)
