"""Differentiation of calls: the programs they hold are differentiated."""

from __future__ import annotations

from bedrax.autodiff.checkpointing import log_plan, plan
from bedrax.autodiff.dependence import dependents
from bedrax.autodiff.flags import log_checkpoint_residuals
from bedrax.autodiff.forward import jvp_jaxpr, jvp_program
from bedrax.autodiff.linearization import linearize_jaxpr, split_jaxpr, split_rules, transpose_jaxpr
from bedrax.autodiff.tables import (
    flags,
    is_undefined,
    jvp_rules,
    linear,
    linearize_rules,
    live,
    no_tangent,
    not_transposable,
    spread,
    transpose_rules,
)
from bedrax.core import dead_code, staging
from bedrax.core.dead_code import kept
from bedrax.core.ir import Jaxpr, run
from bedrax.core.jitting import jit_p, jit_params
from bedrax.lax.primitives import calls as p


def _bind(prim, program: Jaxpr, args, params: dict) -> list:
    """Bind a primitive that applies a program.

    A program derived by a user's rule holds the tracers that the rule closes over: they become arguments.
    """
    program, consts = staging.close_over(program, every=False)
    return prim.bind(*consts, *args, **_params(prim, program, params))


def _params(prim, program: Jaxpr, like: dict) -> dict:
    return jit_params(program, like["name"], like) if prim is jit_p else {**like, "jaxpr": program}


def _derived(prim, params: dict) -> dict:
    """The params of a call of the linear part of a call. The compiler gets the options for derivatives."""
    if prim is not p.xla_metadata_call_p or params["ad_metadata"] == "same":
        return params
    return {**params, "xla_metadata": params["ad_metadata"], "ad_metadata": "same"}


def _jvp(prim):
    def rule(primals, tangents, **params):
        pushed, active_out = jvp_jaxpr(params["jaxpr"], flags(tangents))
        out = _bind(prim, pushed, (*primals, *live(tangents)), params)
        n = len(active_out)
        return out[:n], spread(out[n:], active_out, out[:n])

    jvp_rules.add(prim, rule, "call")


def _linearize(prim):
    def rule(primals, tangents, **params):
        lin = linearize_jaxpr(params["jaxpr"], flags(tangents))
        out = _bind(prim, lin.primal, primals, params)
        results = out[: lin.num_out]
        if not any(lin.active_out):
            return results, no_tangent(prim, results)
        moved = _bind(prim, lin.linear, (*lin.residuals(primals, out), *live(tangents)), _derived(prim, params))
        return results, spread(moved, lin.active_out, results)

    linearize_rules.add(prim, rule, "program")


def _transpose(prim):
    def rule(cts, *args, **params):
        undefined = tuple(is_undefined(x) for x in args)
        program, leaving = transpose_jaxpr(params["jaxpr"], undefined, flags(cts))
        known = [x for x in args if not is_undefined(x)]
        out = iter(_bind(prim, program, (*known, *live(cts)), _derived(prim, params)))
        here = iter(leaving)
        return [next(out) if u and next(here) else None for u in undefined]

    transpose_rules.add(prim, rule, "program")


@split_rules.rule(jit_p, *p.plain_calls, kind="program")
def _split(tape, prim, args, params):
    """Record the part of a call that depends on the tape; run the other part now."""
    marked = tuple(tape.owns(x) for x in args)
    parts = split_jaxpr(params["jaxpr"], marked)
    if parts is None:
        return tape.record(prim, args, params)
    known, rest, depends_out, count = parts
    out = _bind(prim, known, kept(args, [not m for m in marked]), params)
    n = len(out) - count
    linear = (*out[n:], *kept(args, marked))
    dependent = iter(tape.record(prim, linear, _params(prim, rest, params)) if rest.outvars else ())
    others = iter(out[:n])
    return [next(dependent) if d else next(others) for d in depends_out]


for _prim in (jit_p, *p.plain_calls):
    _jvp(_prim)
    _linearize(_prim)
    _transpose(_prim)


@jvp_rules.rule(p.composite_p, kind="call")
def _composite_jvp(primals, tangents, *, jaxpr, **params):
    # The derivative is that of the decomposition; it has no name.
    return jvp_program(jaxpr, primals, tangents)


not_transposable(p.composite_p, why="its derivative is that of its decomposition, which is transposed instead")

_BY_HAND = "each device runs a program of its own; define the derivative of the function with jax.custom_vjp"
jvp_rules.absent(p.custom_partitioning_p, why=_BY_HAND)
transpose_rules.absent(p.custom_partitioning_p, why=_BY_HAND)

# ---- checkpoint

_jvp(p.remat_p)
_transpose(p.remat_p)


@linearize_rules.rule(p.remat_p, kind="program")
def _remat_linearize(primals, tangents, *, jaxpr, prevent_cse, differentiated, policy, **params):
    """Run the program, keeping only the values that the policy saves; the linear part recomputes the rest."""
    split = plan(jaxpr, flags(tangents), policy, prevent_cse)
    if log_checkpoint_residuals.value:
        log_plan(split)
    made = run(split.forward, *primals)
    results, saved = made[: split.num_out], made[split.num_out :]
    if not any(split.active_out):
        return results, no_tangent(p.remat_p, results)
    params = {**params, "prevent_cse": prevent_cse, "differentiated": True, "policy": None}
    out = _bind(p.remat_p, split.recompute_and_push, (*kept(primals, split.reads), *saved, *live(tangents)), params)
    return results, spread(out, split.active_out, results)


@split_rules.rule(p.remat_p, kind="program")
def _remat_split(tape, prim, args, params):
    """Record the part that depends on the tape, with its recomputation; run the other results now."""
    jaxpr = params["jaxpr"]
    marked = tuple(tape.owns(x) for x in args)
    depends = dependents(jaxpr, marked).results
    if all(depends):
        return tape.record(p.remat_p, args, params)
    unmarked = [not m for m in marked]
    known, _ = dead_code.dce_with(jaxpr, [not d for d in depends])
    known = known.replace(invars=kept(known.invars, unmarked))
    others = iter(p.remat_p.bind(*kept(args, unmarked), **{**params, "jaxpr": known}))
    rest, _ = dead_code.dce_with(jaxpr, depends)
    dependent = iter(tape.record(p.remat_p, args, {**params, "jaxpr": rest}) if rest.outvars else ())
    return [next(dependent) if d else next(others) for d in depends]


# ---- identities


@jvp_rules.rule(p.optimization_barrier_p)
def _barrier_jvp(primals, tangents):
    outs = p.optimization_barrier_p.bind(*primals)
    moved = live(tangents)
    return outs, spread(p.optimization_barrier_p.bind(*moved) if moved else (), flags(tangents), outs)


@transpose_rules.rule(p.optimization_barrier_p, kind="linear")
def _barrier_transpose(cts, *args):
    out = iter(p.optimization_barrier_p.bind(*live(cts)))
    return [next(out) if arrives else None for arrives in flags(cts)]


linear(p.name_p, lambda ct, x, name: [ct])
