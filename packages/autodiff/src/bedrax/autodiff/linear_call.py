"""`linear_call`: a linear function whose transpose is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bedrax import pytree
from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.core.source import api_boundary
from bedrax.lax.primitives.custom_rules import linear_call_p


@api_boundary
def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any
) -> Any:
    """Apply a function that is linear in its second argument, and whose transpose is given.

    Args:
      fun: ``(residuals, x) -> y``, linear in `x`.
      fun_transpose: ``(residuals, ct of y) -> ct of x``. The transpose of the call is a call of it, whose
        transpose is `fun` again.
      residual_args, linear_args: pytrees of arrays.

    Returns:
      ``fun(residual_args, linear_args)``.

    Raises:
      TypeError: the result of `fun_transpose` has another structure or other types than `linear_args`.

    Examples:

      >>> def scale(c, x):
      ...     return c * x
      ...
      >>> f = lambda x: jax.custom_derivatives.linear_call(scale, scale, 3., x)
      >>> jax.linear_transpose(f, 1.)(2.)
      (Array(6., dtype=float32, weak_type=True),)
    """
    residuals, res_tree = pytree.tree_flatten(residual_args)
    values, in_tree = pytree.tree_flatten(linear_args)
    res_types = [aval_of(x) for x in residuals]
    in_types = [aval_of(x) for x in values]

    def flat(f, tree):
        def run(*xs):
            own, rest = xs[: len(residuals)], xs[len(residuals) :]
            return pytree.tree_flatten(f(pytree.tree_unflatten(res_tree, own), pytree.tree_unflatten(tree, rest)))

        return run

    call, out_tree = staging.trace_to_jaxpr(flat(fun, in_tree), [*res_types, *in_types])
    back, back_tree = staging.trace_to_jaxpr(flat(fun_transpose, out_tree), [*res_types, *call.out_avals])
    given, wanted = ([a.strip_weak_type().str_short() for a in types] for types in (back.out_avals, in_types))
    if back_tree != in_tree or given != wanted:
        raise TypeError(
            "linear_call: the transpose function must return what the linear arguments are like, a pytree of structure"
            f" {in_tree} with leaves {wanted}, but it returned structure {back_tree} with leaves {given}"
        )
    call, back, consts = staging.close_over_both(call, back)
    out = linear_call_p.bind(
        *consts, *residuals, *values, call_jaxpr=call, transpose=back, num_res=len(consts) + len(residuals)
    )
    return pytree.tree_unflatten(out_tree, out)


__all__ = ["linear_call"]
