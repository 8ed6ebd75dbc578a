"""`jax._src.tree_util`: names that Flax and Orbax use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"bedrax.pytree": "*"},
    renamed={"bedrax.pytree": {"flatten_one_level": "flatten_one_level"}},
    hidden={
        "bedrax.pytree": (
            "_registry",  # Flax, nnx.graphlib; jaxlie
        )
    },
)
