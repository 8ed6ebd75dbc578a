"""`closure_convert`: the values that a function closes over become arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bedrax import pytree
from bedrax.autodiff.tables import has_tangent
from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.core.ir import eval_jaxpr
from bedrax.core.tracing import Tracer

__all__ = ["closure_convert"]


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Turn the values that a function closes over into arguments.

    Args:
      fun: a function that may close over tracers.
      example_args: arguments like those it will be called with.

    Returns:
      (function of the arguments and the closed-over values, list of those values). Values that
      are not being differentiated stay inside.

    Raises:
      TypeError: the converted function is called with arguments of another structure.

    Examples:

      >>> def power(f, x):
      ...     pure, constants = jax.closure_convert(f, x)
      ...     return pure(x, *constants)
      ...
      >>> jax.grad(lambda y: power(lambda x: x * y, 3.))(5.)
      Array(3., dtype=float32, weak_type=True)
    """
    leaves, in_tree = pytree.tree_flatten((example_args, {}))
    jaxpr, out_tree = staging.trace_to_jaxpr(staging.flat_fun(fun, in_tree), [aval_of(x) for x in leaves])
    moved = [isinstance(c, Tracer) and has_tangent(aval_of(c).dtype) for c in jaxpr.consts]
    hoisted = [c for c, m in zip(jaxpr.consts, moved, strict=True) if m]

    def converted(*args):
        own = len(args) - len(hoisted)
        values = iter(args[own:])
        given, tree = pytree.tree_flatten((args[:own], {}))
        if tree != in_tree:
            raise TypeError(f"closure_convert: the function takes arguments of structure {in_tree}, got {tree}")
        consts = [next(values) if m else c for c, m in zip(jaxpr.consts, moved, strict=True)]
        return pytree.tree_unflatten(out_tree, eval_jaxpr(jaxpr, consts, *given))

    return converted, hoisted
