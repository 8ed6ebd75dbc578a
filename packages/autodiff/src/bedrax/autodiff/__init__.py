"""Differentiation: forward mode, linearization, transposition, and functions with rules of their own."""

import os

from bedrax.autodiff.checking import check_grads
from bedrax.autodiff.checkpoint import checkpoint, remat
from bedrax.autodiff.closures import closure_convert
from bedrax.autodiff.custom_rules import SymbolicZero, custom_gradient, custom_jvp, custom_vjp
from bedrax.autodiff.derivatives import grad, jvp, value_and_grad
from bedrax.autodiff.implicit import custom_linear_solve, custom_root
from bedrax.autodiff.jacobians import hessian, jacfwd, jacobian, jacrev
from bedrax.autodiff.linear_maps import fwd_and_bwd, linear_transpose, linearize, vjp
from bedrax.autodiff.policies import checkpoint_policies
from bedrax.core import source
from bedrax.lax.primitives.calls import checkpoint_name

source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))

__all__ = [
    "SymbolicZero", "check_grads", "checkpoint", "checkpoint_name", "checkpoint_policies", "closure_convert", "custom_gradient",
    "custom_jvp", "custom_linear_solve", "custom_root", "custom_vjp", "fwd_and_bwd", "grad", "hessian", "jacfwd", "jacobian", "jacrev", "jvp",
    "linear_transpose", "linearize", "remat", "value_and_grad", "vjp",
]  # fmt: skip
