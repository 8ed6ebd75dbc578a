"""Calls: primitives that hold a program or a function and apply it.

`jit_p` comes from the kernel (`bedrax.core.jitting`). The primitives of functions with
derivative rules of their own hold, until they are staged, plain Python functions; the
classes that users see (`custom_jvp`, `custom_vjp`, `checkpoint`) live in `bedrax.autodiff`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bedrax import pytree
from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.core.dead_code import dead_code_rules
from bedrax.core.ir import Eqn, Jaxpr, call_flat
from bedrax.core.jitting import holds_program
from bedrax.core.tables import Use, calls, families_on_bases, print_rules, programs
from bedrax.core.tracing import Primitive

_FAMILY = "calls"
families_on_bases.add(_FAMILY)


# params: jaxpr, prevent_cse, differentiated, policy
remat_p = holds_program("remat2")
# params: jaxpr
closed_call_p = holds_program("closed_call")
core_call_p = holds_program("core_call")
# params: jaxpr, name, version, attributes (a tuple of pairs)
composite_p = holds_program("composite")


@closed_call_p.def_impl
def _closed_call_impl(*args, jaxpr, **_):
    return call_flat(jaxpr, args)


core_call_p.def_impl(_closed_call_impl)
remat_p.def_impl(_closed_call_impl)
composite_p.def_impl(_closed_call_impl)


# ---- functions with derivative rules of their own

# params: call_jaxpr (a program, or before staging a flat function), jvp_jaxpr_fun
# (``primals, tangents -> results, tangents``; lists that may hold `Zero`), num_consts (leading
# arguments that the function closed over), symbolic_zeros
custom_jvp_call_p = Primitive("custom_jvp_call", _FAMILY, multiple_results=True)
# params: call_jaxpr, fwd_jaxpr_thunk (``args -> results, residuals``), bwd (``residuals, cts -> arg cts``),
# num_consts, symbolic_zeros
custom_vjp_call_p = Primitive("custom_vjp_call", _FAMILY, multiple_results=True)


def _custom_types(*avals, call_jaxpr, **_):
    if len(avals) != len(call_jaxpr.invars):
        raise TypeError(f"{len(avals)} operands for a program that takes {len(call_jaxpr.invars)} arguments")
    return [v.aval for v in call_jaxpr.outvars]


def _custom_programs(params):
    program = params["call_jaxpr"]
    return [calls(program)] if type(program) is Jaxpr else []  # a function, until it is staged


def _print_custom(params: dict) -> dict:
    info = params["debug_info"]
    return {
        "name": info.func_name,
        "call_jaxpr": params["call_jaxpr"],
        "symbolic_zeros": params["symbolic_zeros"],
    }


def _custom_impl(*args, call_jaxpr, **_):
    return call_flat(call_jaxpr, args)


def _stage_custom(trace, prim, args, params):
    fun = params["call_jaxpr"]
    if type(fun) is Jaxpr:
        return trace.record(prim, args, params)
    program = staging.program_of(fun, [trace.lift(x).aval for x in args], params.get("debug_info"))
    program, consts = staging.close_over(program)
    params = {**params, "call_jaxpr": program, "num_consts": params["num_consts"] + len(consts)}
    return trace.record(prim, (*consts, *args), params)


for _prim in (custom_jvp_call_p, custom_vjp_call_p):
    _prim.abstract(_custom_types)
    _prim.def_impl(_custom_impl)
    programs.add(_prim, _custom_programs)
    print_rules.add(_prim, _print_custom)
    staging.stage_rules.add(_prim, _stage_custom)

# The linear part of a function with its own backward rule. Linear in its last `num_tangents`
# arguments; only its transposition is defined. params: bwd, num_res, out_avals, in_avals, symbolic_zeros
custom_lin_p = Primitive("custom_lin", _FAMILY, multiple_results=True)


@custom_lin_p.abstract
def _custom_lin_types(*avals, out_avals, **_):
    return list(out_avals)


@custom_lin_p.def_impl
def refuse_forward_mode(*args, **_):
    """Every rule of `custom_lin` but its transposition."""
    raise TypeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function. It has a rule for reverse mode only; give the"
        " function a rule with jax.custom_jvp to use forward mode, too."
    )


# The forward rule of a custom_vjp function with `optimize_remat`: where no residual is used (the forward pass of a
# `checkpoint`), the function itself stands in for it. params: jaxpr (args -> results, residuals), primal (args -> results)
remat_opt_p = Primitive("remat_opt", _FAMILY, multiple_results=True)
remat_opt_p.abstract(lambda *avals, jaxpr, primal: jaxpr.out_avals)
remat_opt_p.def_impl(_closed_call_impl)
programs.add(remat_opt_p, lambda params: [calls(params["jaxpr"]), calls(params["primal"])])


@dead_code_rules.rule(remat_opt_p)
def _without_residuals(eqn, used):
    primal = eqn.params["primal"]
    count = len(primal.outvars)
    if any(used[count:]):
        return [True] * len(eqn.invars), eqn
    return [True] * len(eqn.invars), Eqn(
        closed_call_p, eqn.invars, eqn.outvars[:count], {"jaxpr": primal}, eqn.effects, eqn.source_info
    )


# A function that is linear in its last arguments. params: call_jaxpr (residuals, linear arguments -> results),
# transpose (residuals, cotangents of the results -> cotangents of the linear arguments), num_res
linear_call_p = Primitive("linear_call", _FAMILY, multiple_results=True)
linear_call_p.abstract(_custom_types)
linear_call_p.def_impl(_custom_impl)


@programs.rule(linear_call_p)
def _linear_call_programs(params):
    back, residuals = params["transpose"], range(params["num_res"])
    cotangents = (None,) * (len(back.invars) - len(residuals))
    return [calls(params["call_jaxpr"]), Use(back, (*residuals, *cotangents), (None,) * len(back.outvars))]


# ---- identities that compilers and policies see

optimization_barrier_p = Primitive("optimization_barrier", _FAMILY, multiple_results=True)
optimization_barrier_p.abstract_eval = lambda *avals: list(avals)


def optimization_barrier(operand: Any, /) -> Any:
    """The identity, across which the compiler moves no computation.

    Args:
      operand: a pytree of arrays.

    Returns:
      The same pytree; every leaf is computed before any leaf is used.
    """
    leaves, tree = pytree.tree_flatten(operand)
    return pytree.tree_unflatten(tree, optimization_barrier_p.bind(*leaves) if leaves else leaves)


# params: name
name_p = Primitive("name", _FAMILY)
name_p.abstract_eval = lambda aval, name: aval


def checkpoint_name(x: Any, name: str) -> Any:
    """Name the leaves of `x`, for the policies of `checkpoint` that save by name.

    Args:
      x: a pytree of arrays.
      name: any string.

    Returns:
      `x`.
    """
    return pytree.tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """A named operation that a compiler may recognise, with its meaning as a function.

    Args:
      decomposition: takes arrays (pytrees) and keyword attributes; what the operation means.
      name: e.g. ``"my.op"``.
      version: of the operation's definition.

    Returns:
      A function of the same arrays and attributes.
    """

    def call(*args, **attributes):
        leaves, in_tree = pytree.tree_flatten((args, {}))
        flat = staging.flat_fun(lambda *a: decomposition(*a, **attributes), in_tree)
        program, out_tree = staging.trace_to_jaxpr(flat, [aval_of(x) for x in leaves])
        program, consts = staging.close_over(program)
        if consts:
            raise NotImplementedError(
                f"composite '{name}': the decomposition closes over array values; pass them as arguments instead"
            )
        out = composite_p.bind(
            *leaves, jaxpr=program, name=name, version=version, attributes=tuple(sorted(attributes.items()))
        )
        return pytree.tree_unflatten(out_tree, out)

    return call
