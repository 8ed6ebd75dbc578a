"""The type checker of jaxprs: tests run it after every pass.

A program is well typed if each variable is bound once and before it is used, and each
equation's results have the types that its primitive's shape rule gives to its operands.
"""

from __future__ import annotations

from bedrax.core import dims
from bedrax.core.errors import JaxprTypeError
from bedrax.core.ir import Jaxpr, Literal, join_effects, subjaxprs


def _same(a, b, weak: bool = False) -> bool:
    if a is b or a == b:
        return True
    if not (a.is_array and b.is_array):
        return False
    return (
        a.dtype == b.dtype and dims.same_shape(a.shape, b.shape) and (not weak or a.weak_type == b.weak_type)
    )


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check a program and every program in it.

    Raises:
      JaxprTypeError: naming the equation and what is wrong with it.
    """
    bound = set()

    def bind(v, where):
        if v in bound:
            raise JaxprTypeError(f"variable bound twice, the second time by {where}, in\n{jaxpr}")
        bound.add(v)

    def read(v, where):
        if type(v) is not Literal and v not in bound:
            raise JaxprTypeError(f"{where} uses a variable that nothing binds before, in\n{jaxpr}")

    for v in (*jaxpr.constvars, *jaxpr.invars):
        bind(v, "the arguments")
    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            read(v, f"'{eqn}'")
        for inner in subjaxprs(eqn.params):
            check_jaxpr(inner)
        expected = eqn.primitive.abstract_eval(*(v.aval for v in eqn.invars), **eqn.params)
        expected = list(expected) if eqn.primitive.multiple_results else [expected]
        given = [v.aval for v in eqn.outvars]
        if len(expected) != len(given) or not all(map(_same, expected, given)):
            raise JaxprTypeError(
                f"'{eqn}' declares results of types {', '.join(a.short() for a in given)}, but its shape rule gives"
                f" {', '.join(a.short() for a in expected)}, in\n{jaxpr}"
            )
        for v in eqn.outvars:
            bind(v, f"'{eqn}'")
        if not eqn.effects <= jaxpr.effects:
            raise JaxprTypeError(
                f"'{eqn}' has effects {set(eqn.effects)}, the program declares {set(jaxpr.effects)}"
            )
        _check_program_arguments(eqn)
    for v in jaxpr.outvars:
        read(v, "a result")
    if join_effects(jaxpr.eqns) != jaxpr.effects:
        raise JaxprTypeError(f"the program declares effects {set(jaxpr.effects)} that no equation has")


def _check_program_arguments(eqn) -> None:
    """Operands of an equation that applies one program must be of the program's argument types."""
    inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
    if type(inner) is not Jaxpr or not eqn.primitive.call_primitive:
        return
    given = [v.aval for v in eqn.invars]
    wanted = inner.in_avals
    if len(given) != len(wanted) or not all(map(_same, given, wanted)):
        raise JaxprTypeError(
            f"'{eqn}' applies a program of argument types {', '.join(a.short() for a in wanted)} to operands of types"
            f" {', '.join(a.short() for a in given)}"
        )
