"""Differentiation: forward mode, linearization, transposition, and functions with rules of their own."""

import os

import bedrax.numpy_backend  # noqa: F401  # it evaluates, unless a backend of a higher rank is installed
from bedrax.core import source
from bedrax.core.lazy import attach

source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.lax.primitives.calls": ("checkpoint_name",),
        ".checking": ("check_grads",),
        ".checkpointing": ("checkpoint", "remat"),
        ".closures": ("closure_convert",),
        ".custom_rules": ("SymbolicZero", "custom_gradient", "custom_jvp", "custom_vjp"),
        ".derivatives": ("grad", "jvp", "value_and_grad"),
        ".implicit": ("custom_linear_solve", "custom_root"),
        ".jacobians": ("hessian", "jacfwd", "jacobian", "jacrev"),
        ".linear_maps": ("fwd_and_bwd", "linear_transpose", "linearize", "vjp"),
        ".": ("checkpoint_policies",),
    },
)
