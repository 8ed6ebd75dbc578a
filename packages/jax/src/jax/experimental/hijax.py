"""`jax.experimental.hijax`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.core.avals": ("AbstractValue", "ShapedArray"),
        "bedrax.core.effects": ("control_flow_allowed_effects",),
        "bedrax.state.hi_prims": (
            "GradAccum",
            "HiPrim",
            "MappingSpec",
            "NullAccum",
            "RefAccum",
            "ValAccum",
            "VJPHiPrimitive",
            "bdims_at_front",
            "instantiate_zeros",
            "jvp_from_lin",
            "linearize_from_jvp",
            "unmap_avals",
            "vjp_from_jvp",
            "vjp_from_lin",
            "vmap_rule",
        ),
        "bedrax.extend.interpreters": ("Zero", "is_undefined_primal"),
        "bedrax.parallel.specs": ("HiPspec",),
        "bedrax.state": ("AbstractRef", "TransformedRef"),
        "bedrax.state.hi_types": (
            "AvalMutableQDD",
            "AvalQDD",
            "HiPrimitive",
            "HiType",
            "MutableHiType",
            "aval_method",
            "aval_property",
            "register_hitype",
        ),
    },
)
