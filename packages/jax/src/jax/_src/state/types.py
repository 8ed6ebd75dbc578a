"""`jax._src.state.types`: needed by Flax (nnx.variablelib: AbstractRef)."""

from bedrax.extend.refs import (
    AbstractRef,
)
