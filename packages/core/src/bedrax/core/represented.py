"""Programs with values of libraries' types, as programs on the arrays that represent these values.

A type with ``represented = True`` is a type of a program's values. Transformations see one value of one type. An executor
runs the program that this module derives: each such variable becomes those of `AbstractValue.lo_ty`, and an operation of
a library becomes its composition (`represent_rules`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bedrax.core.arrays_of_values import arrays_of, low_types, values_of
from bedrax.core.avals import AbstractValue, aval_of
from bedrax.core.facts import cached
from bedrax.core.holders import Body, Held, held, of_uses, roles
from bedrax.core.ir import Jaxpr, run
from bedrax.core.staging import StagingTrace, trace_to_jaxpr
from bedrax.core.tables import Use, identities, programs, represent_rules
from bedrax.core.tracing import Primitive


@cached
def holds(program: Jaxpr) -> bool:
    """Whether a program, or one inside it, has a value of a library's type, or an operation with such a composition."""
    own = (*program.invars, *program.constvars, *program.outvars)
    if any(v.aval.represented for v in own):
        return True
    for eqn in program.eqns:
        inner = [use.program for use in programs[eqn.primitive](eqn.params)]
        if any(map(holds, inner)) or (not inner and eqn.primitive in represent_rules):
            return True
    return any(v.aval.represented for eqn in program.eqns for v in eqn.outvars)


class RepresentingTrace(StagingTrace):
    """Records a program on arrays. Values of libraries' types are Python objects that hold its tracers."""

    __slots__ = ()

    def process(self, prim: Primitive, args: tuple[Any, ...] | list[Any], params: dict[str, Any]) -> Any:
        if takes_values(prim, args, params):
            return bind_on_arrays(prim, args, params)
        rule = None if programs[prim](params) else represent_rules.find(prim)
        return super().process(prim, args, params) if rule is None else rule(*args, **params)


def takes_values(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> bool:
    """Whether an operation holds programs with values of libraries' types, or returns such operands."""
    if prim in identities:
        return any(aval_of(x).represented for x in args)
    return any(holds(use.program) for use in programs[prim](params))


def bind_on_arrays(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Bind such an operation on arrays. Takes and returns values."""
    rule = represent_rules.find(prim)
    if rule is not None:
        return rule(*args, **params)
    if prim in identities:
        types = [aval_of(x) for x in args]
        arrays = arrays_of(types, args)
        if prim.multiple_results:
            return values_of(types, prim.bind(*arrays, **params))
        return values_of(types, [prim.bind(x, **params) for x in arrays])[0]
    uses = programs[prim](params)
    ins, outs = _types(uses, len(args))
    out = _on_arrays(uses, len(args)).bind(prim, params, array=arrays_of(ins, args))
    return values_of(outs, [out["array", n] for n in range(len(out))])


def run_on_arrays(program: Jaxpr, args: Sequence[Any], evaluate: Callable[..., Any]) -> list[Any]:
    """The results of a program with such values, by ``evaluate(program on arrays, arrays) -> arrays``."""
    return values_of(program.out_avals, evaluate(on_arrays(program), arrays_of(program.in_avals, args)))


@cached
def on_arrays(program: Jaxpr) -> Jaxpr:
    """The program on arrays; the program itself if it has arrays only."""
    if not holds(program):
        return program

    def flat(*arrays):
        outs = run(program, *values_of(program.in_avals, arrays))
        return arrays_of(program.out_avals, outs), None

    return trace_to_jaxpr(flat, low_types(program.in_avals), program.debug_info, kind=RepresentingTrace)[0]


def _types(uses: Sequence[Use], operands: int) -> tuple[list[Any], list[Any]]:
    """For each operand and result of an operation, a type that is represented by as many arrays."""
    ins: dict[int, Any] = {}
    outs: dict[int, Any] = {}
    for use in uses:
        ins.update(zip(use.operands, use.program.in_avals, strict=True))
        outs.update(zip(use.results, use.program.out_avals, strict=True))
    return [ins.get(o, AbstractValue()) for o in range(operands)], [outs[r] for r in sorted(outs.keys() - {None})]


def _numbers(types: Sequence[AbstractValue]) -> list[list[int]]:
    """The numbers of the arrays of each value among the arrays of all."""
    count, numbers = 0, []
    for aval in types:
        numbers.append(list(range(count, count + len(aval.lo_ty()))))
        count += len(numbers[-1])
    return numbers


@of_uses
def _on_arrays(uses: Sequence[Use], operands: int) -> Held:
    """The operation that holds the programs on arrays. Sources of operands and of results are named "array"."""
    places = dict(zip(("operand", "result"), map(_numbers, _types(uses, operands)), strict=True))
    spread = lambda name, i: [None] if i is None else [("array", n) for n in places[name][i]]
    bodies = [
        Body(
            on_arrays(use.program),
            [s for o in use.operands for s in spread("operand", o)],
            [s for r in use.results for s in spread("result", r)],
        )
        for use in uses
    ]
    ins, outs = (
        [wire._replace(source=s) for wire in wires for s in spread(*wire.source)] for wires in roles(uses, operands)
    )
    return held(uses, bodies, ins, outs)
