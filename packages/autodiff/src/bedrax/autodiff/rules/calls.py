"""Differentiation of calls: the programs they hold are differentiated."""

from __future__ import annotations

from bedrax.autodiff import policies
from bedrax.autodiff.forward import jvp_flat
from bedrax.autodiff.linearize import closed_over_error, linearize_jaxpr, split_rules, transpose_jaxpr
from bedrax.autodiff.tables import (
    Zero,
    add_tangents,
    instantiate,
    is_undefined,
    jvp_rules,
    linear,
    linearize_rules,
    transpose_rules,
)
from bedrax.core import dead_code, dtypes, passes, staging
from bedrax.core.avals import aval_of
from bedrax.core.facts import cached
from bedrax.core.ir import Jaxpr, Var, call_flat, eval_jaxpr
from bedrax.core.jitting import jit_p, jit_params
from bedrax.lax.primitives.calls import (
    closed_call_p,
    composite_p,
    core_call_p,
    custom_jvp_call_p,
    custom_lin_p,
    custom_vjp_call_p,
    linear_call_p,
    name_p,
    optimization_barrier_p,
    refuse_forward_mode,
    remat_opt_p,
    remat_p,
)

# ---- programs


@cached
def jvp_jaxpr(jaxpr: Jaxpr, active: tuple[bool, ...], instantiate_out: tuple[bool, ...] | bool = False):
    """The program ``args, tangents of the active args -> results, tangents of the active results``.

    Returns:
      (program, which results have a tangent).
    """
    tangent_types = [a.to_tangent_aval() for a, m in zip(jaxpr.in_avals, active, strict=True) if m]

    def pushed(*values):
        primals, rest = values[: len(active)], iter(values[len(active) :])
        tangents = [next(rest) if m else Zero.of(x) for x, m in zip(primals, active, strict=True)]
        outs, out_tangents = jvp_flat(lambda *xs: eval_jaxpr(jaxpr, jaxpr.consts, *xs), primals, tangents)
        n = len(out_tangents)
        wanted = (instantiate_out,) * n if isinstance(instantiate_out, bool) else instantiate_out
        out_tangents = [instantiate(t) if w else t for t, w in zip(out_tangents, wanted, strict=True)]
        moving = tuple(type(t) is not Zero for t in out_tangents)
        return [*outs, *(t for t in out_tangents if type(t) is not Zero)], moving

    return staging.trace_to_jaxpr(pushed, [*jaxpr.in_avals, *tangent_types])


def bind_program(prim, program: Jaxpr, args, params_for) -> list:
    """Bind a primitive that applies a program.

    A program derived by somebody's rule holds the tracers that the rule closes over: they become arguments.
    """
    program, consts = staging.close_over(program, every=False)
    return prim.bind(*consts, *args, **params_for(program))


def spread(values, active: tuple[bool, ...], outs) -> list:
    """Tangents of all results, given those of the active ones."""
    rest = iter(values)
    return [next(rest) if a else Zero.of(x) for a, x in zip(active, outs, strict=True)]


def _live(tangents) -> tuple[tuple[bool, ...], list]:
    return tuple(type(t) is not Zero for t in tangents), [t for t in tangents if type(t) is not Zero]


def _program_rows(prim, params_for) -> None:
    """jvp, linearize and transpose of a primitive that applies a program."""

    @jvp_rules.rule(prim, kind="program")
    def _(primals, tangents, **params):
        active, live = _live(tangents)
        pushed, active_out = jvp_jaxpr(params["jaxpr"], active)
        out = bind_program(prim, pushed, (*primals, *live), lambda p: params_for(p, params, "jvp"))
        n = len(active_out)
        return out[:n], spread(out[n:], active_out, out[:n])

    @linearize_rules.rule(prim, kind="program")
    def _(primals, tangents, **params):
        active, live = _live(tangents)
        lin = linearize_jaxpr(params["jaxpr"], active)
        out = bind_program(prim, lin.primal, primals, lambda p: params_for(p, params, "jvp"))
        results = out[: lin.num_out]
        if not any(lin.active_out):
            return results, [Zero.of(x) for x in results]
        tangents_out = bind_program(
            prim, lin.linear, (*lin.residuals(primals, out), *live), lambda p: params_for(p, params, "jvp")
        )
        return results, spread(tangents_out, lin.active_out, results)

    @transpose_rules.rule(prim, kind="program")
    def _(cts, *args, **params):
        undefined = tuple(is_undefined(x) for x in args)
        arriving, live = _live(cts)
        program, leaving = transpose_jaxpr(params["jaxpr"], undefined, arriving)
        others = [x for x in args if not is_undefined(x)]
        out = iter(
            bind_program(prim, program, (*others, *live), lambda p: params_for(p, params, "transpose"))
        )
        flags = iter(leaving)
        return [next(out) if u and next(flags) else None for u in undefined]

    @split_rules_for(prim)
    def _(tape, args, params):
        return split_call(tape, prim, args, params, lambda p: params_for(p, params, "jvp"))


def split_rules_for(prim):
    def register(rule):
        split_rules[prim] = rule
        return rule

    return register


@cached
def split_jaxpr(jaxpr: Jaxpr, linear_in: tuple[bool, ...], force_out: tuple[bool, ...] | None = None):
    """Split a program by dependence on some arguments.

    Args:
      linear_in: the marked arguments.
      force_out: results that count as dependent even where they are not (a loop's carry whose initial
        value is).

    Returns:
      (known: other args -> other results, residuals; rest: residuals, marked args -> dependent
      results; which results depend on the marked arguments; number of residuals), or None
      where nothing would be left in `known`.
    """
    depends, depends_out = passes.dependents(jaxpr, linear_in)
    if force_out is not None:
        depends_out = tuple(d or f for d, f in zip(depends_out, force_out, strict=True))
    if all(depends) and all(depends_out):
        return None
    known_eqns = [e for e, d in zip(jaxpr.eqns, depends, strict=True) if not d]
    rest_eqns = [e for e, d in zip(jaxpr.eqns, depends, strict=True) if d]
    known_in = [v for v, m in zip(jaxpr.invars, linear_in, strict=True) if not m]
    available = {*known_in, *jaxpr.constvars, *(v for e in known_eqns for v in e.outvars)}
    residuals: dict[Var, None] = {}
    for e in rest_eqns:
        residuals.update((v, None) for v in e.invars if type(v) is Var and v in available)
    forced = (v for v, d in zip(jaxpr.outvars, depends_out, strict=True) if d)
    residuals.update((v, None) for v in forced if type(v) is Var and v in available)
    known = Jaxpr(
        known_in,
        [v for v, d in zip(jaxpr.outvars, depends_out, strict=True) if not d] + list(residuals),
        known_eqns,
        jaxpr.constvars,
        jaxpr.consts,
    )
    rest = Jaxpr(
        list(residuals) + [v for v, m in zip(jaxpr.invars, linear_in, strict=True) if m],
        [v for v, d in zip(jaxpr.outvars, depends_out, strict=True) if d],
        rest_eqns,
    )
    return known, rest, depends_out, len(residuals)


def split_call(tape, prim, args, params, params_for):
    """Record the part of a call that depends on the tape; run the other part now."""
    marked = tuple(tape.owns(x) for x in args)
    parts = split_jaxpr(params["jaxpr"], marked)
    if parts is None:
        return tape.record(prim, args, params)
    known, rest, depends_out, count = parts
    out = prim.bind(*(x for x, m in zip(args, marked, strict=True) if not m), **params_for(known))
    n = len(out) - count
    dependent = iter(
        tape.record(prim, (*out[n:], *(x for x, m in zip(args, marked, strict=True) if m)), params_for(rest))
        if rest.outvars
        else ()
    )
    others = iter(out[:n])
    return [next(dependent) if d else next(others) for d in depends_out]


def _jit_params(jaxpr, params, label):
    return jit_params(jaxpr, params["name"], params)


_program_rows(jit_p, _jit_params)
for _prim in (closed_call_p, core_call_p):
    _program_rows(_prim, lambda jaxpr, params, label: {**params, "jaxpr": jaxpr})


@jvp_rules.rule(composite_p, kind="program")
def _composite_jvp(primals, tangents, *, jaxpr, **params):
    # The derivative is that of the meaning; it has no name.
    return jvp_flat(lambda *xs: eval_jaxpr(jaxpr, jaxpr.consts, *xs), primals, tangents)


transpose_rules.absent(
    composite_p, why="its derivative is that of its decomposition, which is transposed instead"
)

# ---- checkpoint


@jvp_rules.rule(remat_p, kind="program")
def _remat_jvp(primals, tangents, *, jaxpr, **params):
    active, live = _live(tangents)
    pushed, active_out = jvp_jaxpr(jaxpr, active)
    out = bind_program(remat_p, pushed, (*primals, *live), lambda p: {**params, "jaxpr": p})
    n = len(active_out)
    return out[:n], spread(out[n:], active_out, out[:n])


@linearize_rules.rule(remat_p, kind="program")
def _remat_linearize(primals, tangents, *, jaxpr, prevent_cse, differentiated, policy, **params):
    """Run the program, keeping only what the policy saves; the linear part recomputes the rest."""
    active, live = _live(tangents)
    plan = policies.plan(jaxpr, active, policy, prevent_cse)
    kept = eval_jaxpr(plan.forward, plan.forward.consts, *primals)
    results, saved = kept[: plan.num_out], kept[plan.num_out :]
    if not any(plan.active_out):
        return results, [Zero.of(x) for x in results]
    out = bind_program(
        remat_p, plan.recompute_and_push, (*primals, *saved, *live),
        lambda p: {**params, "jaxpr": p, "prevent_cse": prevent_cse, "differentiated": True, "policy": None},
    )  # fmt: skip
    return results, spread(out, plan.active_out, results)


@split_rules_for(remat_p)
def _remat_split(tape, args, params):
    """Record the part that depends on the tape, with what it recomputes; run the other results now."""
    jaxpr = params["jaxpr"]
    marked = tuple(tape.owns(x) for x in args)
    depends = passes.dependents(jaxpr, marked)[1]
    if all(depends):
        return tape.record(remat_p, tuple(args), params)
    known, _ = dead_code.dce_with(jaxpr, [not d for d in depends])
    known = known.replace(invars=[v for v, m in zip(known.invars, marked, strict=True) if not m])
    others = iter(
        remat_p.bind(*(x for x, m in zip(args, marked, strict=True) if not m), **{**params, "jaxpr": known})
    )
    rest, _ = dead_code.dce_with(jaxpr, depends)
    dependent = iter(tape.record(remat_p, tuple(args), {**params, "jaxpr": rest}) if rest.outvars else ())
    return [next(dependent) if d else next(others) for d in depends]


@transpose_rules.rule(remat_p, kind="program")
def _remat_transpose(cts, *args, jaxpr, prevent_cse, policy, **params):
    undefined = tuple(is_undefined(x) for x in args)
    arriving, live = _live(cts)
    program, leaving = transpose_jaxpr(jaxpr, undefined, arriving)
    others = [x for x in args if not is_undefined(x)]
    out = iter(
        bind_program(
            remat_p,
            program,
            (*others, *live),
            lambda p: {**params, "jaxpr": p, "prevent_cse": prevent_cse, "policy": policy},
        )
    )
    flags = iter(leaving)
    return [next(out) if u and next(flags) else None for u in undefined]


# ---- functions with derivative rules of their own


@jvp_rules.rule(custom_jvp_call_p)
def _custom_jvp(primals, tangents, *, call_jaxpr, jvp_jaxpr_fun, num_consts, symbolic_zeros, **_):
    if any(type(t) is not Zero for t in tangents[:num_consts]):
        raise closed_over_error("custom_jvp")
    primals, tangents = primals[num_consts:], tangents[num_consts:]
    if not symbolic_zeros:
        tangents = [instantiate(t) for t in tangents]
    return jvp_jaxpr_fun(primals, tangents)


transpose_rules.absent(
    custom_jvp_call_p, why="its jvp rule stands for it in linear programs, so it is never part of one"
)


@jvp_rules.rule(custom_vjp_call_p)
def _custom_vjp(
    primals,
    tangents,
    *,
    call_jaxpr,
    fwd_jaxpr_thunk,
    bwd,
    num_consts,
    symbolic_zeros,
    optimize_remat=False,
    **_,
):
    if any(type(t) is not Zero for t in tangents[:num_consts]):
        raise closed_over_error("custom_vjp")
    consts = primals[:num_consts]
    primals, tangents = primals[num_consts:], tangents[num_consts:]
    active = tuple(type(t) is not Zero for t in tangents)
    if symbolic_zeros:
        outs, residuals = fwd_jaxpr_thunk(*primals, active=active)
    elif optimize_remat:
        outs, residuals = _replaceable(call_jaxpr, fwd_jaxpr_thunk, consts, primals)
    else:
        outs, residuals = fwd_jaxpr_thunk(*primals)
    live = [t for t, m in zip(tangents, active, strict=True) if m]
    if not live:
        return outs, [Zero.of(x) for x in outs]
    out_types = tuple(aval_of(x).to_tangent_aval().strip_weak_type() for x in outs)
    tangents_out = custom_lin_p.bind(
        *residuals, *live, bwd=bwd, num_res=len(residuals), out_avals=out_types, active=active,
        symbolic_zeros=symbolic_zeros,
    )  # fmt: skip
    return outs, [
        t if dtypes.is_inexact(a.dtype) else Zero(a) for t, a in zip(tangents_out, out_types, strict=True)
    ]


def _replaceable(program, fwd, consts, primals) -> tuple[list, list]:
    """Results and residuals of a forward rule, as one operation that becomes the function where nothing is linear."""
    types = [aval_of(x) for x in primals]

    def flat(*xs):
        outs, residuals = fwd(*xs)
        return [*outs, *residuals], len(outs)

    rule, count = staging.trace_to_jaxpr(flat, types)
    fun = staging.program_of(lambda *xs: call_flat(program, (*consts, *xs)), types)
    rule, fun, hoisted = staging.close_over_both(rule, fun)
    args = [*hoisted, *primals]
    given = dict(zip(rule.invars, args, strict=True))
    out = remat_opt_p.bind(*args, jaxpr=rule, primal=fun)
    # A residual that is an argument needs no rule.
    out = [given.get(v, x) if type(v) is Var else x for v, x in zip(rule.outvars, out, strict=True)]
    return out[:count], out[count:]


@jvp_rules.rule(remat_opt_p, kind="program")
def _remat_opt_jvp(primals, tangents, *, jaxpr, primal):
    return jvp_flat(lambda *xs: eval_jaxpr(jaxpr, jaxpr.consts, *xs), primals, tangents)


transpose_rules.absent(remat_opt_p, why="it holds a forward rule, which is not linear")


@jvp_rules.rule(linear_call_p)
def _linear_call_jvp(primals, tangents, *, call_jaxpr, transpose, num_res):
    params = {"call_jaxpr": call_jaxpr, "transpose": transpose, "num_res": num_res}
    res, linear_args = primals[:num_res], primals[num_res:]
    if all(type(t) is Zero for t in tangents[:num_res]):
        outs = linear_call_p.bind(*primals, **params)
        moved = [Zero.of(x) for x in outs]
    else:  # its rule is for the linear arguments only
        outs, moved = jvp_flat(
            lambda *rs: eval_jaxpr(call_jaxpr, call_jaxpr.consts, *rs, *linear_args), res, tangents[:num_res]
        )
    if all(type(t) is Zero for t in tangents[num_res:]):
        return outs, moved
    pushed = linear_call_p.bind(*res, *map(instantiate, tangents[num_res:]), **params)
    return outs, [
        add_tangents(a, b) if dtypes.is_inexact(aval_of(b).dtype) else a
        for a, b in zip(moved, pushed, strict=True)
    ]


@transpose_rules.rule(linear_call_p, kind="linear")
def _linear_call_transpose(cts, *args, call_jaxpr, transpose, num_res):
    back = linear_call_p.bind(
        *args[:num_res], *map(instantiate, cts), call_jaxpr=transpose, transpose=call_jaxpr, num_res=num_res
    )
    return [None] * num_res + [
        ct if is_undefined(x) else None for x, ct in zip(args[num_res:], back, strict=True)
    ]


def _split_linear_call(tape, args, params):
    """Linear in all of its last arguments: those that the tape does not hold are separated from it."""
    num_res = params["num_res"]
    if any(tape.owns(x) for x in args[:num_res]):
        return call_flat(params["call_jaxpr"], args)
    return tape.record(linear_call_p, args, params)


split_rules[linear_call_p] = _split_linear_call


transpose_rules.absent(
    custom_vjp_call_p, why="its rules stand for it in linear programs, so it is never part of one"
)


@transpose_rules.rule(custom_lin_p)
def _custom_lin_transpose(cts, *args, bwd, num_res, out_avals, active, symbolic_zeros):
    residuals = args[:num_res]
    if not symbolic_zeros:
        cts = [instantiate(ct) for ct in cts]
    back = bwd(residuals, cts)
    return [None] * num_res + [ct for ct, m in zip(back, active, strict=True) if m]


jvp_rules.add(custom_lin_p, refuse_forward_mode, "error")


def _open_custom(tape, args, params):
    """Of tangents such a function is linear: what it does is recorded, its rule is not needed."""
    return call_flat(params["call_jaxpr"], args)


for _prim in (custom_jvp_call_p, custom_vjp_call_p):
    split_rules[_prim] = _open_custom

# ---- identities


def _same(cts, *args, **_):
    return [None if type(ct) is Zero else ct for ct in cts]


@jvp_rules.rule(optimization_barrier_p)
def _barrier_jvp(primals, tangents):
    active, live = _live(tangents)
    outs = optimization_barrier_p.bind(*primals)
    return outs, spread(optimization_barrier_p.bind(*live) if live else (), active, outs)


@transpose_rules.rule(optimization_barrier_p, kind="linear")
def _barrier_transpose(cts, *args):
    arriving, live = _live(cts)
    out = iter(optimization_barrier_p.bind(*live))
    return [next(out) if a else None for a in arriving]


linear(name_p, lambda ct, x, name: [ct])
