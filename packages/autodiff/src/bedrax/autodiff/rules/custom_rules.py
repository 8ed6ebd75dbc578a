"""Differentiation of functions with rules of their own: their rules run."""

from __future__ import annotations

from bedrax.autodiff.forward import jvp_flat, jvp_program
from bedrax.autodiff.linearization import split_rules
from bedrax.autodiff.tables import (
    Zero,
    add_tangents,
    flags,
    has_tangent,
    instantiate,
    is_undefined,
    jvp_rules,
    live,
    no_tangent,
    not_transposable,
    transpose_rules,
)
from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.core.errors import UnexpectedTracerError
from bedrax.core.ir import Var, run
from bedrax.core.tracing import pvary_p, varying_axes
from bedrax.lax.primitives import custom_rules as p
from bedrax.lax.primitives.collectives import psum


def _has_tangent(x) -> bool:
    return has_tangent(aval_of(x).dtype)


class CustomVJPException(UnexpectedTracerError):
    """A function with a rule of its own is differentiated with respect to a value that it closes over. Upstream has an
    exception of this name in a private module, and the tests of Diffrax expect it."""


def _own_arguments(what: str, primals, tangents, num_consts: int) -> tuple:
    """The arguments that a rule takes. Raises if a value that the function closes over has a tangent."""
    if any(flags(tangents[:num_consts])):
        raise CustomVJPException(
            f"a {what} function is differentiated with respect to a closed-over value. Its rule"
            " differentiates with respect to the arguments only. Pass the value as an argument, and extend the rule to"
            " this argument."
        )
    return primals[num_consts:], tangents[num_consts:]


# ---- custom_jvp


@jvp_rules.rule(p.custom_jvp_call_p)
def _custom_jvp(primals, tangents, *, rule, num_consts=0, **_):
    primals, tangents = _own_arguments("custom_jvp", primals, tangents, num_consts)
    outs, moved = rule.jvp(primals, tangents if rule.symbolic_zeros else list(map(instantiate, tangents)))
    return outs, [_varies_as(out, t) for out, t in zip(outs, moved, strict=True)]


def _varies_as(out, tangent):
    """The tangent, cast to vary over the axes of the result. The transpose of the cast sums the cotangents."""
    axes = varying_axes(aval_of(out))
    return pvary_p.bind(tangent, axes=axes) if axes and type(tangent) is not Zero else tangent


@split_rules.rule(p.custom_jvp_call_p, p.custom_vjp_call_p, kind="opened")
def _open(tape, prim, args, params):
    """A function applied to tangents is linear: its operations are recorded, without its rule."""
    return run(params["call_jaxpr"], *args)


not_transposable(
    p.custom_jvp_call_p,
    p.custom_vjp_call_p,
    why="its rule stands for it in linear programs, so it is never part of one",
)

# ---- custom_vjp


@jvp_rules.rule(p.custom_vjp_call_p, kind="reverse only")
def _custom_vjp(primals, tangents, *, rule, num_consts=0, **program):
    consts = primals[:num_consts]
    primals, tangents = _own_arguments("custom_vjp", primals, tangents, num_consts)
    active = flags(tangents)
    if rule.optimize_remat:
        call = lambda *xs: run(program["call_jaxpr"], *consts, *xs)
        outs, residuals, bwd = _replaceable(call, rule, primals, active)
    else:
        outs, residuals, bwd = rule.forward(primals, active)
    if not any(active):
        return outs, no_tangent(p.custom_vjp_call_p, outs)
    out_types = tuple([aval_of(x).to_tangent_aval().strip_weak_type() for x in outs])
    moved = p.custom_lin_p.bind(
        *residuals,
        *live(tangents),
        bwd=bwd,
        num_res=len(residuals),
        out_avals=out_types,
        active=active,
        symbolic_zeros=rule.symbolic_zeros,
    )
    moves = getattr(bwd, "moves", None) or [has_tangent(a.dtype) for a in out_types]
    return outs, [t if m and has_tangent(a.dtype) else Zero(a) for t, m, a in zip(moved, moves, out_types, strict=True)]


def _replaceable(call, rule, primals, active) -> tuple:
    """The result of `rule.forward`, by one operation that turns into the function if no residual is used."""
    types = [aval_of(x) for x in primals]

    def flat(*xs):
        outs, residuals, bwd = rule.forward(xs, active)
        return [*outs, *residuals], (len(outs), bwd)

    forward, (count, bwd) = staging.trace_to_jaxpr(flat, types)
    forward, fun, hoisted = staging.close_over_both(forward, staging.program_of(call, types))
    forward = staging.without_references(forward)
    args = [*hoisted, *primals]
    given = dict(zip(forward.invars, args, strict=True))
    out = p.remat_opt_p.bind(*args, jaxpr=forward, primal=fun)
    # A residual that is an argument needs no rule.
    out = [given.get(v, x) if type(v) is Var else x for v, x in zip(forward.outvars, out, strict=True)]
    return out[:count], out[count:], bwd


@jvp_rules.rule(p.remat_opt_p, kind="call")
def _remat_opt_jvp(primals, tangents, *, jaxpr, primal):
    return jvp_program(jaxpr, primals, tangents)


not_transposable(p.remat_opt_p, why="it holds a forward rule, which is not linear")

jvp_rules.add(p.custom_lin_p, p.refuse_forward_mode, "error")


@transpose_rules.rule(p.custom_lin_p)
def _custom_lin_transpose(cts, *args, bwd, num_res, out_avals, active, symbolic_zeros):
    back = bwd(args[:num_res], cts if symbolic_zeros else list(map(instantiate, cts)))
    back = [ct for ct, m in zip(back, active, strict=True) if m]
    return [None] * num_res + [_summed(ct, x) for ct, x in zip(back, args[num_res:], strict=True)]


def _summed(ct, x):
    """The cotangent of an argument, summed over the axes along which the argument is equal and the cotangent is not."""
    more = frozenset() if ct is None or type(ct) is Zero else varying_axes(aval_of(ct)) - varying_axes(x.aval)
    return psum(ct, tuple(more)) if more else ct


# ---- linear_call


@jvp_rules.rule(p.linear_call_p)
def _linear_call_jvp(primals, tangents, *, num_res, **params):
    params["num_res"] = num_res
    res, linear_args = primals[:num_res], primals[num_res:]
    if any(flags(tangents[:num_res])):  # its rule is for the linear arguments only
        fun = lambda *rs: run(params["call_jaxpr"], *rs, *linear_args)
        outs, moved = jvp_flat(fun, res, tangents[:num_res])
    else:
        outs = p.linear_call_p.bind(*primals, **params)
        moved = no_tangent(p.linear_call_p, outs)
    if not any(flags(tangents[num_res:])):
        return outs, moved
    pushed = p.linear_call_p.bind(*res, *map(instantiate, tangents[num_res:]), **params)
    return outs, [add_tangents(a, b) if _has_tangent(b) else a for a, b in zip(moved, pushed, strict=True)]


@transpose_rules.rule(p.linear_call_p, kind="linear")
def _linear_call_transpose(cts, *args, call_jaxpr, transpose, num_res):
    back = p.linear_call_p.bind(
        *args[:num_res], *map(instantiate, cts), call_jaxpr=transpose, transpose=call_jaxpr, num_res=num_res
    )
    return [None] * num_res + [ct if is_undefined(x) else None for x, ct in zip(args[num_res:], back, strict=True)]


@split_rules.rule(p.linear_call_p, kind="opened")
def _split_linear_call(tape, prim, args, params):
    """Record the call if all residuals are known, else the operations of its function."""
    if any(tape.owns(x) for x in args[: params["num_res"]]):
        return run(params["call_jaxpr"], *args)
    return tape.record(p.linear_call_p, args, params)
