from bedrax.lax.primitives.calls import checkpoint_name as checkpoint_name
from .checking import check_grads as check_grads
from .checkpointing import checkpoint as checkpoint, remat as remat
from .closures import closure_convert as closure_convert
from .custom_rules import (
    SymbolicZero as SymbolicZero,
    custom_gradient as custom_gradient,
    custom_jvp as custom_jvp,
    custom_vjp as custom_vjp,
)
from .derivatives import grad as grad, jvp as jvp, value_and_grad as value_and_grad
from .implicit import custom_linear_solve as custom_linear_solve, custom_root as custom_root
from .jacobians import hessian as hessian, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev
from .linear_maps import (
    fwd_and_bwd as fwd_and_bwd,
    linear_transpose as linear_transpose,
    linearize as linearize,
    vjp as vjp,
)
from . import checkpoint_policies as checkpoint_policies
