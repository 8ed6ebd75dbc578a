"""`jax._src.config`: the options."""

from bedrax.core.config import (
    config,
    enable_x64,
)
