"""`jax.interpreters.batching`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.extend.interpreters": (
            "axis_primitive_batchers",
            "batch_jaxpr_axes",
            "bdim_at_front",
            "broadcast",
            "defbroadcasting",
            "defreducer",
            "defvectorized",
            "fancy_primitive_batchers",
            "moveaxis",
            "not_mapped",
            "primitive_batchers",
            "register_vmappable",
            "unregister_vmappable",
            "zero_if_mapped",
        )
    },
)
