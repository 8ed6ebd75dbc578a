"""`jax.custom_derivatives`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.autodiff.custom": (
        "CustomVJPPrimal", "custom_jvp_call_p", "custom_vjp_call_p", "custom_vjp_primal_tree_values",
        "zero_from_primal",
    ),
    "bedrax.autodiff": (
        "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp",
    ),
    "bedrax.autodiff.linear_call": (
        "linear_call",
    ),
    "bedrax.lax.primitives.calls": (
        "remat_opt_p",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.autodiff.custom import (
        CustomVJPPrimal as CustomVJPPrimal, custom_jvp_call_p as custom_jvp_call_p,
        custom_vjp_call_p as custom_vjp_call_p,
        custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
        zero_from_primal as zero_from_primal,
    )  # fmt: skip
    from bedrax.autodiff import (
        SymbolicZero as SymbolicZero, closure_convert as closure_convert,
        custom_gradient as custom_gradient, custom_jvp as custom_jvp, custom_vjp as custom_vjp,
    )  # fmt: skip
    from bedrax.autodiff.linear_call import (
        linear_call as linear_call,
    )  # fmt: skip
    from bedrax.lax.primitives.calls import remat_opt_p as remat_opt_p  # fmt: skip
