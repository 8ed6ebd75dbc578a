"""`jax._src.flatten_util`: needed by BlackJAX."""

from jax.flatten_util import (
    ravel_pytree,
)
