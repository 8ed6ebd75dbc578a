"""`jax.custom_derivatives`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.autodiff.custom_rules": ("CustomVJPPrimal", "custom_vjp_primal_tree_values", "zero_from_primal"),
        "bedrax.autodiff": ("SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp"),
        "bedrax.autodiff.linear_call": ("linear_call",),
        "bedrax.lax.primitives.custom_rules": ("custom_jvp_call_p", "custom_vjp_call_p", "remat_opt_p"),
    },
)
