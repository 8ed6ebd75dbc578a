"""Partial evaluation: run what depends on known values only, record the rest.

Needed by Flax (`trace_to_jaxpr_nounits`, in core.partial_eval, core.axes_scan and jax_utils).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bedrax.autodiff.linearization import Node, Tape
from bedrax.core import dead_code, staging
from bedrax.core.avals import AbstractValue, aval_of
from bedrax.core.ir import DebugInfo, Eqn, Jaxpr
from bedrax.core.tracing import current, entered
from bedrax.extend.partial_values import PartialVal
from bedrax.extend.unsupported import refuse_options


def trace_to_jaxpr_nounits(fun: Any, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False):
    """Run a flat function on partly known values.

    Args:
      fun: a `WrappedFun` (or function) from values to a list of values.
      pvals: its arguments.
      instantiate: which results to treat as unknown in any case.

    Returns:
      (program: residuals, unknown arguments -> unknown results; results as `PartialVal`; values of the residuals).
    """
    call = getattr(fun, "call_wrapped", fun)
    tape = Tape(current.trace)
    inputs = [Node(tape, p[0]) for p in pvals if not p.is_known()]
    rest = iter(inputs)
    args = [p.get_known() if p.is_known() else next(rest) for p in pvals]
    with entered(tape):
        outs = list(call(*args))
    forced = [instantiate] * len(outs) if isinstance(instantiate, bool) else list(instantiate)
    unknown = [tape.owns(x) or f for x, f in zip(outs, forced, strict=True)]
    jaxpr, residuals = tape.to_jaxpr(inputs, [x for x, u in zip(outs, unknown, strict=True) if u])
    out_pvals = [
        PartialVal.unknown(aval_of(x)) if u else PartialVal.known(x) for x, u in zip(outs, unknown, strict=True)
    ]
    return jaxpr, out_pvals, residuals


def trace_to_jaxpr_dynamic(
    fun: Any, in_avals: Sequence[AbstractValue], *, keep_inputs=None, lower=False, auto_dce=False
):
    """Record a flat function: (program, types of its results, values of its constants)."""
    refuse_options("trace_to_jaxpr_dynamic", keep_inputs=keep_inputs, lower=lower, auto_dce=auto_dce)
    info = getattr(fun, "debug_info", None)
    jaxpr = staging.program_of(
        getattr(fun, "call_wrapped", fun), in_avals, info if isinstance(info, DebugInfo) else None
    )
    return jaxpr, jaxpr.out_avals, jaxpr.consts


def _each(flags: bool | Sequence[bool], count: int) -> list[bool]:
    return [flags] * count if isinstance(flags, bool) else list(flags)


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False,
    live_inputs: bool | Sequence[bool] = True,
) -> tuple[Jaxpr, list[bool]]:  # fmt: skip
    """Remove equations that no used result needs.

    Args:
      jaxpr: the program. Its constants stay, also those that nothing uses.
      used_outputs: which results are used; one flag stands for all.
      instantiate: which arguments stay in any case.
      live_inputs: of arguments that are references, which are read after the program has run. What is only written to
        another one is removed.

    Returns:
      (the program for the used results only, which arguments it needs).
    """
    count = len(jaxpr.invars)
    smaller, used = dead_code.dce_with(
        jaxpr, _each(used_outputs, len(jaxpr.outvars)), read_after=_each(live_inputs, count)
    )
    kept = [u or f for u, f in zip(used, _each(instantiate, len(used)), strict=True)]
    smaller = smaller.replace(
        invars=[v for v, k in zip(smaller.invars, kept, strict=True) if k],
        constvars=jaxpr.constvars,
        consts=jaxpr.consts,
    )
    return smaller, kept


dce_rules = dead_code.dead_code_rules
JaxprTracer = Node
Val = Any


def dce_jaxpr_consts(jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False) -> tuple:
    """(the program for the used results only, which constants it needs, which arguments); other constants are removed."""
    smaller, used = dce_jaxpr(jaxpr, used_outputs, instantiate)
    smaller, _ = dead_code.dce_with(smaller, [True] * len(smaller.outvars))
    kept = {*smaller.constvars}
    return smaller, [v in kept for v in jaxpr.constvars], used


def dce_jaxpr_call_rule(used_outputs: Sequence[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
    """What is left of a call of a program of which only some results are used: (which operands, the equation)."""
    return dce_rules[eqn.primitive](eqn, list(used_outputs))


dce_jaxpr_closed_call_rule = dce_jaxpr_call_rule
