"""`jax.interpreters.ad`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.autodiff.forward": ("JVPTrace", "JVPTracer"),
        "bedrax.extend.interpreters": (
            "UndefinedPrimal",
            "Zero",
            "add_jaxvals",
            "add_tangents",
            "backward_pass",
            "defbilinear",
            "defjvp",
            "defjvp2",
            "deflinear",
            "deflinear2",
            "get_primitive_transpose",
            "instantiate_zeros",
            "is_undefined_primal",
            "jvp",
            "jvp_jaxpr",
            "primitive_jvps",
            "primitive_transposes",
            "zeros_like_aval",
        ),
        "bedrax.lax.primitives.elementwise": ("add_jaxvals_p",),
    },
)
