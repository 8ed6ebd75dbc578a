"""`jax._src.checkify`: needed by Flax (nnx.transforms.transforms: user_checks)."""

from bedrax.extend.checkify import (
    Error,
    JaxException,
    Out,
    check,
    checkify,
    user_checks,
)
