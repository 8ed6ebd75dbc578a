"""The type checker of jaxprs: tests run it after every pass.

A program is well typed if each variable is bound once and before it is used, and each
equation's results have the types that its primitive's shape rule gives to its operands.
"""

from __future__ import annotations

from bedrax.core import dims
from bedrax.core.effects import OperandEffect
from bedrax.core.errors import JaxprTypeError
from bedrax.core.ir import Jaxpr, Literal, join_effects
from bedrax.core.tables import programs, shape_rules
from bedrax.core.tracing import extend_axes


def _same(a, b, weak: bool = False) -> bool:
    if a is b or a == b:
        return True
    if not (a.is_array and b.is_array):
        return False
    return a.dtype == b.dtype and dims.same_shape(a.shape, b.shape) and (not weak or a.weak_type == b.weak_type)


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check a program and every program in it.

    Raises:
      JaxprTypeError: the program is not well typed. The message names the equation and its fault.

    Examples:

      >>> from jax.extend import core

      >>> program = jax.make_jaxpr(lambda x: 2 * jnp.sin(x))(1.)
      >>> core.check_jaxpr(program)  # prints and returns nothing: it is valid
      >>> wide = core.Var(jax.core.ShapedArray((3,), jnp.float32))
      >>> try:
      ...     core.check_jaxpr(program.replace(eqns=[program.eqns[0].replace(outvars=[wide])], outvars=[wide]))
      ... except core.JaxprTypeError as error:
      ...     print(str(error).splitlines()[0])
      'a:f32[3] = sin... b' declares results of types f32[3], but its shape rule gives f32[], in
    """
    bound = set()

    def bind(v, where):
        if v in bound:
            raise JaxprTypeError(f"variable bound twice, the second time by {where}, in\n{jaxpr}")
        bound.add(v)

    def read(v, where):
        if type(v) is not Literal and v not in bound:
            raise JaxprTypeError(f"{where} uses a variable that is not bound before, in\n{jaxpr}")

    for v in (*jaxpr.constvars, *jaxpr.invars):
        bind(v, "the arguments")
    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            read(v, f"'{eqn}'")
        try:
            expected = shape_rules[eqn.primitive](*(v.aval for v in eqn.invars), **eqn.params)
        except (TypeError, ValueError) as e:
            raise JaxprTypeError(f"the shape rule of '{eqn}' refuses its operands: {e}") from e
        expected = list(expected) if eqn.primitive.multiple_results else [expected]
        given = [v.aval for v in eqn.outvars]
        if len(expected) != len(given) or not all(map(_same, expected, given)):
            raise JaxprTypeError(
                f"'{eqn}' declares results of types {', '.join(a.short() for a in given)}, but its shape rule gives"
                f" {', '.join(a.short() for a in expected)}, in\n{jaxpr}"
            )
        for v in eqn.outvars:
            bind(v, f"'{eqn}'")
        if not {e for e in eqn.effects if not isinstance(e, OperandEffect)} <= jaxpr.effects:
            raise JaxprTypeError(f"'{eqn}' has effects {set(eqn.effects)}, the program declares {set(jaxpr.effects)}")
        _check_programs(eqn)
    for v in jaxpr.outvars:
        read(v, "a result")
    if join_effects(jaxpr.eqns, (*jaxpr.constvars, *jaxpr.invars)) != jaxpr.effects:
        raise JaxprTypeError(f"the program declares effects {set(jaxpr.effects)} that no equation has")


def _check_programs(eqn) -> None:
    """Check the programs of an equation, and that their arguments and results have the types of its own."""
    operands, results = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]

    def check(what, use, types, places, own, leading):
        if len(types) != len(places):
            raise JaxprTypeError(f"'{eqn}' gives {len(places)} {what}s to a program of {len(types)} {what}s")
        for n, (inner, place) in enumerate(zip(types, places, strict=True)):
            if place is None:
                continue
            outer = own[place] if place < len(own) else None
            if outer is not None and n >= len(types) - leading:
                inner = inner.rows_type(use.rounds)
            if outer is None or not _same(inner, outer):
                given = "nothing" if outer is None else outer.short()
                raise JaxprTypeError(
                    f"'{eqn}' has {given} for {what} {n} of a program, which is of type {inner.short()}"
                )

    for use in programs[eqn.primitive](eqn.params):
        with extend_axes(dict(use.axes)):
            check_jaxpr(use.program)
        if use.operands is not None:
            check("argument", use, use.program.in_avals, use.operands, operands, use.slices)
            check("result", use, use.program.out_avals, use.results, results, use.stacks)
        for operand, result in use.carries:
            if not _same(operands[operand], results[result]):
                raise JaxprTypeError(
                    f"'{eqn}' carries {operands[operand].short()} into a round and {results[result].short()} out"
                )
