"""Partial evaluation: run the operations that depend on known values only, record the others.

Needed by Flax (`trace_to_jaxpr_nounits`, in core.partial_eval, core.axes_scan and jax_utils).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from bedrax.autodiff.linearization import Node, Tape, split_jaxpr
from bedrax.core import dead_code, staging
from bedrax.core.avals import AbstractValue, aval_of
from bedrax.core.ir import DebugInfo, Eqn, Jaxpr, Literal
from bedrax.core.signatures import signature_of
from bedrax.core.tables import programs, wires, with_programs
from bedrax.core.tracing import Primitive, current, entered
from bedrax.extend.interpreters import TableView
from bedrax.extend.partial_values import PartialVal
from bedrax.lax.choices import refuse_options
from bedrax.lax.tables import decompositions
from bedrax.state.hi_prims import hi_call_p


def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[Any], list[Any]]:
    """Run a flat function on partly known values.

    Args:
      fun: a `WrappedFun` (or function) from values to a list of values.
      pvals: its arguments.
      instantiate: a boolean per result: whether it always counts as unknown.

    Returns:
      (program: residuals, unknown arguments -> unknown results; results as `PartialVal`; values of the residuals).

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> known, unknown = pe.PartialVal.known(3.), pe.PartialVal.unknown(jax.typeof(1.))
      >>> program, (first, second), saved = pe.trace_to_jaxpr_nounits(lambda x, y: [x * x, x * y], [known, unknown])
      >>> first.get_known(), second.is_known()
      (9.0, False)
      >>> jax.core.eval_jaxpr(program.jaxpr, (), *saved, 5.)
      [Array(15., dtype=float32, ...)]
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
    jaxpr, residuals = tape.end().to_jaxpr(inputs, [x for x, u in zip(outs, unknown, strict=True) if u])
    out_pvals = [
        PartialVal.unknown(aval_of(x)) if u else PartialVal.known(x) for x, u in zip(outs, unknown, strict=True)
    ]
    return jaxpr, out_pvals, residuals


def trace_to_jaxpr_dynamic(
    fun: Any, in_avals: Sequence[AbstractValue], *, keep_inputs: Any = None, lower: bool = False, auto_dce: bool = False
) -> tuple[Jaxpr, list[Any], list[Any]]:
    """Trace a function of flat values, and return its program.

    Args:
      fun: a `WrappedFun`, or a function, from values to a list of values.
      in_avals: the types of the arguments.
      keep_inputs, lower, auto_dce: only their defaults.

    Returns:
      (program, types of its results, values of its constants).

    Raises:
      NotImplementedError: `keep_inputs`, `lower` or `auto_dce` is not its default.

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> kinds = [jax.core.ShapedArray((2,), jnp.dtype("float32"))]
      >>> program, out_kinds, consts = pe.trace_to_jaxpr_dynamic(lambda x: [x * 2, x.sum()], kinds)
      >>> out_kinds, consts
      ([ShapedArray(float32[2]), ShapedArray(float32[])], [])
    """
    refuse_options("trace_to_jaxpr_dynamic", keep_inputs=keep_inputs, lower=lower, auto_dce=auto_dce)
    info = getattr(fun, "debug_info", None)
    jaxpr = staging.program_of(
        getattr(fun, "call_wrapped", fun), in_avals, info if isinstance(info, DebugInfo) else None
    )
    return jaxpr, jaxpr.out_avals, jaxpr.consts


def _each(flags: bool | Sequence[bool], count: int) -> list[bool]:
    return [flags] * count if isinstance(flags, bool) else list(flags)


def dce_jaxpr(
    jaxpr: Jaxpr,
    used_outputs: bool | Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
    live_inputs: bool | Sequence[bool] = True,
) -> tuple[Jaxpr, list[bool]]:
    """Remove equations that no used result needs.

    Args:
      jaxpr: the program. All its constants stay.
      used_outputs: which results are used; one flag stands for all.
      instantiate: a boolean per argument: whether it always stays.
      live_inputs: for arguments that are references: whether they are read after the program. Operations that only
        write to other references are removed.

    Returns:
      (the program for the used results only, a boolean per argument: whether it is needed).

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> program = jax.make_jaxpr(lambda x, y: (x + 1, jnp.sin(y)))(1., 2.).jaxpr
      >>> pe.dce_jaxpr(program, [True, False])
      ({ lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }, [True, False])
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


def _own_form(rule: Callable) -> Callable:
    """A library's rule, ``(used results, [live arguments,] equation)``, as a rule of the column."""
    if getattr(rule, "of_column", None) is not None:
        return rule.of_column
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(p.kind in kinds and p.default is p.empty for p in signature_of(rule).parameters.values())
    if count == 2:
        return lambda eqn, used: rule(list(used), eqn)
    return lambda eqn, used: rule(list(used), [True] * len(eqn.invars), eqn)


def _library_form(own: Callable) -> Callable:
    def rule(used_outputs: list[bool], *live_ins_and_eqn: Any) -> tuple[list[bool], Eqn | None]:
        return own(live_ins_and_eqn[-1], list(used_outputs))

    rule.of_column = own
    return rule


class _DeadCodeRules(TableView):
    """The rules that shrink equations: ``rule(used results, live arguments, equation)``, or without the second
    argument."""

    def __getitem__(self, prim: Primitive) -> Any:
        return _library_form(self.table[prim])


dce_rules: Final = _DeadCodeRules(dead_code.dead_code_rules, _own_form)
JaxprTracer = Node
Val = Any


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Any, ...]:
    """Remove the operations, arguments and constants of a program that the used results do not need.

    Args:
      jaxpr: the program.
      used_outputs: a boolean per result: whether it is used.
      instantiate: a boolean per argument, or one for all: whether it always stays.

    Returns:
      (the smaller program, a boolean per constant: whether it stays, a boolean per argument: whether it stays).

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> table, unused = np.arange(2.), np.arange(3.)
      >>> program = jax.make_jaxpr(lambda x: (x * jnp.asarray(table), x + jnp.asarray(unused)))(1.)
      >>> smaller, consts, args = pe.dce_jaxpr_consts(program.jaxpr, [True, False])
      >>> len(smaller.eqns), consts, args
      (1, [True, False], [True])
    """
    smaller, used = dce_jaxpr(jaxpr, used_outputs, instantiate)
    smaller, _ = dead_code.dce_with(smaller, [True] * len(smaller.outvars))
    kept = {*smaller.constvars}
    return smaller, [v in kept for v in jaxpr.constvars], used


def dce_jaxpr_call_rule(
    used_outputs: list[bool], live_ins: list[bool] | Eqn, eqn: Eqn | None = None
) -> tuple[list[bool], Eqn | None]:
    """Returns the equation of a call, reduced to the results that are used.

    Args:
      used_outputs: which results are used.
      live_ins: for operands that are references: whether they are read after the call. Default: they are.
      eqn: the equation.

    Returns:
      (which operands are needed, the equation, or None).

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> f = jax.jit(lambda x, y: (x + 1, jnp.sin(y)))
      >>> (call,) = jax.make_jaxpr(f)(1., 2.).eqns
      >>> needed, smaller = pe.dce_jaxpr_call_rule([True, False], call)
      >>> needed, len(smaller.invars), len(smaller.outvars)
      ([True, False], 1, 1)

      >>> f = jax.jit(lambda x, y: (x + 1, jnp.sin(y)))
      >>> (call,) = jax.make_jaxpr(f)(1., 2.).eqns
      >>> pe.dce_jaxpr_closed_call_rule([False, True], call)[0]
      [False, True]
    """
    eqn = live_ins if eqn is None else eqn
    return dead_code.dead_code_rules[eqn.primitive](eqn, list(used_outputs))


dce_jaxpr_closed_call_rule = dce_jaxpr_call_rule


# ---- programs with rearranged arguments or results


def close_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The program itself, which holds its constants.

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> program = jax.make_jaxpr(jnp.sin)(1.)
      >>> pe.close_jaxpr(program).consts
      []
    """
    return jaxpr


def convert_constvars_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its constants as leading arguments.

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> program = jax.make_jaxpr(lambda x: x + np.arange(100.))(1.)
      >>> len(program.in_avals), len(pe.convert_constvars_jaxpr(program).in_avals)
      (1, 2)
    """
    return staging.close_over(jaxpr)[0]


def move_binders_to_back(closed_jaxpr: Jaxpr, to_move: Sequence[bool]) -> Jaxpr:
    """Return the program with the marked arguments after the others. Both groups keep their order.

    Args:
      closed_jaxpr: the program.
      to_move: a boolean per argument: whether it is marked.

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> program = pe.move_binders_to_back(jax.make_jaxpr(lambda x, y: x - y)(1., 2.), [True, False])
      >>> jax.core.eval_jaxpr(program, program.consts, 2., 1.)
      [Array(-1., dtype=float32, weak_type=True)]
    """
    stay = [v for v, m in zip(closed_jaxpr.invars, to_move, strict=True) if not m]
    return closed_jaxpr.replace(invars=[*stay, *(v for v, m in zip(closed_jaxpr.invars, to_move, strict=True) if m)])


def prune_closed_jaxpr_outputs(jaxpr: Jaxpr, used_outputs: Sequence[bool]) -> Jaxpr:
    """Return the program with the marked results only. Its equations and arguments stay.

    Args:
      jaxpr: the program.
      used_outputs: a boolean per result: whether it is marked.

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> len(pe.prune_closed_jaxpr_outputs(jax.make_jaxpr(lambda x: (x, -x))(1.), [False, True]).out_avals)
      1
    """
    return jaxpr.replace(outvars=[v for v, u in zip(jaxpr.outvars, used_outputs, strict=True) if u])


def abstract_eval_fun(
    fun: Callable[..., Any], *avals: AbstractValue, debug_info: Any = None, **params: Any
) -> list[AbstractValue]:
    """The types of the results of a flat function.

    Args:
      fun: takes values and `params` by keyword; returns a list of values.
      avals: the types of the values.
      debug_info: names for messages.

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> pe.abstract_eval_fun(lambda x: [jnp.sin(x)], jax.core.ShapedArray((3,), jnp.float32))
      [ShapedArray(float32[3])]
    """
    info = debug_info if isinstance(debug_info, DebugInfo) else None
    return staging.program_of(lambda *xs: fun(*xs, **params), list(avals), info).out_avals


def partial_eval_jaxpr_nounits(
    jaxpr: Jaxpr, unknowns: Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[Jaxpr, Jaxpr, list[bool], list[AbstractValue]]:
    """Split a program into two parts by dependence on unknown arguments.

    Args:
      jaxpr: the program.
      unknowns: which arguments are unknown.
      instantiate: a boolean per result: whether it always counts as unknown.

    Returns:
      (program of the known arguments: known results, then residuals; program of residuals and unknown arguments:
      unknown results; which results are unknown; the types of the residuals).

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> program = jax.make_jaxpr(lambda x, y: jnp.sin(x) * y)(1., 2.)
      >>> known, rest, unknown, residuals = pe.partial_eval_jaxpr_nounits(program, [False, True], False)
      >>> unknown, [str(eqn.primitive) for eqn in known.eqns], [str(eqn.primitive) for eqn in rest.eqns]
      ([True], ['sin'], ['mul'])
    """
    unknowns, forced = tuple(unknowns), tuple(_each(instantiate, len(jaxpr.outvars)))
    parts = split_jaxpr(jaxpr, unknowns, forced)
    if parts is None:  # every operation depends on unknown arguments: the known ones are residuals
        given = [v for v, u in zip(jaxpr.invars, unknowns, strict=True) if not u]
        read = {v for eqn in jaxpr.eqns for v in eqn.invars} | {*jaxpr.outvars}
        residuals = [v for v in (*jaxpr.constvars, *given) if v in read]
        known = Jaxpr(given, residuals, [], jaxpr.constvars, jaxpr.consts)
        rest = [v for v, u in zip(jaxpr.invars, unknowns, strict=True) if u]
        parts = (
            known,
            Jaxpr([*residuals, *rest], jaxpr.outvars, jaxpr.eqns),
            (True,) * len(jaxpr.outvars),
            len(residuals),
        )
    known, unknown, out_unknowns, count = parts
    return known, unknown, list(out_unknowns), unknown.in_avals[:count]


def lower_jaxpr2(jaxpr: Jaxpr) -> Jaxpr:
    """The program with operations of libraries (`jax.experimental.hijax.HiPrim`) replaced by their compositions.

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> len(pe.lower_jaxpr2(jax.make_jaxpr(jnp.sin)(1.)).eqns)
      1
    """

    def lowered(*args):
        env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*jaxpr.consts, *args], strict=True))
        read = lambda v: v.val if type(v) is Literal else env[v]
        for eqn in jaxpr.eqns:
            prim, params = eqn.primitive, eqn.params
            values = list(map(read, eqn.invars))
            if prim is hi_call_p:
                out = decompositions[prim](*values, **params)
            else:
                held = programs[prim](params)
                if held and with_programs.states(prim):
                    lower = [lower_jaxpr2(use.program) for use in held]
                    params = with_programs[prim](params, lower, *wires(held, len(eqn.invars), len(eqn.outvars)))
                out = prim.bind(*values, **params)
            env.update(zip(eqn.outvars, out if prim.multiple_results else [out], strict=True))
        return list(map(read, jaxpr.outvars))

    return staging.program_of(lowered, jaxpr.in_avals, jaxpr.debug_info)
