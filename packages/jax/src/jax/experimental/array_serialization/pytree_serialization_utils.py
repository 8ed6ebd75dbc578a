"""`jax.experimental.array_serialization.pytree_serialization_utils`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.processes.tree_io": (
            "deserialize_pytreedef",
            "register_pytree_node_serialization",
            "serialize_pytreedef",
        )
    },
)
