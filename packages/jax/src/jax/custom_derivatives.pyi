from bedrax.autodiff.custom_rules import (
    CustomVJPPrimal as CustomVJPPrimal,
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
    zero_from_primal as zero_from_primal,
)
from bedrax.autodiff import (
    SymbolicZero as SymbolicZero,
    closure_convert as closure_convert,
    custom_gradient as custom_gradient,
    custom_jvp as custom_jvp,
    custom_vjp as custom_vjp,
)
from bedrax.autodiff.linear_call import linear_call as linear_call
from bedrax.lax.primitives.custom_rules import (
    custom_jvp_call_p as custom_jvp_call_p,
    custom_vjp_call_p as custom_vjp_call_p,
    remat_opt_p as remat_opt_p,
)
