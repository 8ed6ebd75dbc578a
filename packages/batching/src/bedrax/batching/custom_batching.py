"""Functions with a batching rule of their own: `custom_vmap`, `sequential_vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from bedrax import lax, pytree
from bedrax.batching.tables import batch_rules, to_front
from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.core.codes import coded
from bedrax.core.ir import call_flat
from bedrax.core.signatures import signature_of
from bedrax.core.source import api_boundary
from bedrax.core.staging import function_name
from bedrax.core.tables import calls, print_rules, programs
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike
from bedrax.lax.tables import decompositions

# params: call (a program), rule (``axis_size, batched flags, values -> results, batched flags``), num_consts
# (leading arguments that the function closed over, which the rule does not see)
custom_vmap_p: Final = Primitive("custom_vmap_call", "custom_vmap", multiple_results=True)
custom_vmap_p.abstract_eval = lambda *avals, call, **_: call.out_avals
programs.add(custom_vmap_p, lambda params: [calls(params["call"])])
print_rules.add(custom_vmap_p, lambda params: {"call": params["call"], "num_consts": params["num_consts"]})


@custom_vmap_p.def_impl
def _impl(*args, call, **_):
    return call_flat(call, args)


decompositions.add(custom_vmap_p, _impl)


@batch_rules.rule(custom_vmap_p)
def _batch(axis, args, dims, *, call, rule, num_consts):
    if any(d is not None for d in dims[:num_consts]):
        raise NotImplementedError("vmap of a custom_vmap function over a closed-over value; pass it as an argument")
    values = [
        x if d is None else to_front(x, d, axis.size) for x, d in zip(args[num_consts:], dims[num_consts:], strict=True)
    ]
    outs, batched = rule(axis.size, [d is not None for d in dims[num_consts:]], values)
    return outs, [0 if b else None for b in batched]


class custom_vmap:
    """A function whose batching rule is given.

    Args:
      fun: takes and returns pytrees of arrays.

    Use ``@f.def_vmap`` on the rule ``(axis_size, in_batched, *args) -> (result, out_batched)``:
    mapped arguments come with the mapped axis first, `in_batched` has the structure of the
    arguments with booleans as leaves, `out_batched` that of the result.

    Examples:

      >>> @jax.custom_batching.custom_vmap
      ... def double(x):
      ...     return 2 * x
      ...
      >>> @double.def_vmap
      ... def rule(axis_size, in_batched, x):
      ...     print("a batch of", axis_size)
      ...     return 2 * x, in_batched[0]
      ...
      >>> jax.vmap(double)(jnp.array([1, 2]))
      a batch of 2
      Array([2, 4], dtype=int32)
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule and return it."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    @api_boundary
    def __call__(self, *args: ArrayLike, **kwargs: Any) -> Any:
        if self.vmap_rule is None:
            raise AttributeError(
                coded(
                    "BX-CUSTOM-RULE",
                    f"the custom_vmap function {function_name(self.fun)} has no rule yet; use def_vmap",
                )
            )
        if kwargs:
            bound = signature_of(self.fun).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
            if kwargs:
                raise TypeError(f"custom_vmap functions take positional arguments, got {sorted(kwargs)} by keyword")
        leaves, in_tree = pytree.tree_flatten(args)
        call_tree = pytree.tree_structure((args, {}))
        types = tuple(aval_of(x) for x in leaves)
        program, consts, out_tree = staging.trace_function(self.fun, call_tree, types)

        def rule(axis_size, batched, values):
            result = self.vmap_rule(
                axis_size, list(pytree.tree_unflatten(in_tree, batched)), *pytree.tree_unflatten(in_tree, values)
            )
            return self._checked(result, axis_size, out_tree)

        outs = custom_vmap_p.bind(*consts, *leaves, call=program, rule=rule, num_consts=len(consts))
        return pytree.tree_unflatten(out_tree, outs)

    def _checked(self, result: Any, axis_size, out_tree) -> tuple[list, list]:
        name = function_name(self.fun)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(f"the vmap rule of {name} must return a pair (result, out_batched), got {result!r}")
        outs, tree = pytree.tree_flatten(result[0])
        batched, flag_tree = pytree.tree_flatten(result[1])
        if tree != flag_tree:
            raise ValueError(f"the vmap rule of {name} returned structure {tree}, but out_batched has {flag_tree}")
        if out_tree != tree:
            raise ValueError(f"the vmap rule of {name} returned structure {tree}, but the function returns {out_tree}")
        for x, b in zip(outs, batched, strict=True):
            if b and (not aval_of(x).shape or aval_of(x).shape[0] != axis_size):
                raise ValueError(
                    f"the vmap rule of {name}: a mapped result has shape {aval_of(x).shape}, without axis {axis_size}"
                )
        return outs, batched


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """`f` as a function that `vmap` applies to one element after another, in a loop (`lax.map`).

    Examples:

      >>> @jax.custom_batching.sequential_vmap
      ... def f(x):
      ...     return jnp.sin(x)
      ...
      >>> jax.vmap(f)(jnp.array([0., 1.]))
      Array([0.        , 0.84147096], dtype=float32)
    """
    wrapped = custom_vmap(f)

    @wrapped.def_vmap
    def rule(axis_size, in_batched, *args):
        leaves, tree = pytree.tree_flatten(args)
        flags = pytree.tree_leaves(in_batched)
        mapped = [x for x, b in zip(leaves, flags, strict=True) if b]

        def one(values):
            rest = iter(values)
            return f(*pytree.tree_unflatten(tree, [next(rest) if b else x for x, b in zip(leaves, flags, strict=True)]))

        out = lax.map(one, mapped)
        return out, pytree.tree_map(lambda _: True, out)

    return wrapped


__all__ = ["custom_vmap", "sequential_vmap"]
