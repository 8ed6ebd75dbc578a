"""Operations that hold programs with references, as operations on the values of the references.

A loop carries the values that it writes; the values that a call or a branch writes are further results.
"""

from __future__ import annotations

from collections.abc import Sequence

from bedrax.core.holders import Body, Held, held, of_uses, roles, sources
from bedrax.core.ir import Jaxpr, run
from bedrax.core.passes import called_program
from bedrax.core.tables import CARRY, CONSTANT, ROW, Use, Wire, programs
from bedrax.core.tracing import Primitive, current, eval_trace
from bedrax.state.discharge import discharged, identity, lends
from bedrax.state.primitives import DischargeTrace, read_whole, write_whole
from bedrax.state.tables import discharge_rules
from bedrax.state.types import Ref


@of_uses
def _pure(uses: Sequence[Use], same: tuple[int, ...]) -> Held:
    """The operation on values. Its results named "final" are the last values of the references that are written to.

    Args:
      same: for each operand, the first one that is the same reference, or its own number.
    """
    pure = [discharged(use.program) for use in uses]
    for use, (_, own) in zip(uses, pure, strict=True):
        if use.results == (None,) and own:
            raise ValueError("the condition of a while_loop writes to a reference; it may be read there only")
    written = sorted({same[use.operands[k]] for use, (_, own) in zip(uses, pure, strict=True) for k in own})
    rounds = any(use.carries or use.rounds is not None for use in uses)
    # A value that one program writes and another reads is one value.
    source = [("operand", first if first in written else o) for o, first in enumerate(same)]
    finals = sources("final", written)
    bodies = []
    for use, (program, own) in zip(uses, pure, strict=True):
        takes, gives = [source[o] for o in use.operands], sources("result", use.results)
        if gives != [None]:
            last = dict(zip(takes, program.invars, strict=True))
            last.update((takes[k], v) for k, v in zip(own, program.outvars[len(gives) :], strict=True))
            values = [last["operand", o] for o in written]
            program, gives = program.replace(outvars=[*values, *program.outvars[: len(gives)]]), [*finals, *gives]
        bodies.append(Body(program, takes, gives))
    ins, outs = roles(uses, len(same))
    ins = [w for w in ins if source[w.source[1]] == w.source]
    if rounds:
        carried = [Wire(CARRY, ("operand", o), tuple(range(len(uses)))) for o in written]
        ins = [*carried, *(w for w in ins if w.source[1] not in written)]
    outs = [*(Wire(CARRY if rounds else CONSTANT, final) for final in finals), *outs]
    return held(uses, bodies, ins, outs)


def discharges_programs(*prims: Primitive) -> None:
    """Register the row of operations that hold programs."""
    for prim in prims:

        @discharge_rules.rule(prim)
        def rule(*args, prim=prim, **params):
            program = called_program(prim, params)
            if program is not None and needs_references(program):
                return run(program, *args)
            uses = programs[prim](params)
            for x, wire in zip(args, roles(uses, len(args))[0], strict=True):
                if isinstance(x, Ref) and wire.kind in (CARRY, ROW):
                    raise ValueError(
                        f"{prim}: a carried value, or an operand that is read row by row, is a reference of type {x.aval.short()}:"
                        " references are not data that a loop can carry. Let the function close over the reference."
                    )
            names = [identity(x) if isinstance(x, Ref) else None for x in args]
            same = tuple(
                [i if n is None else next(k for k, m in enumerate(names) if m is n) for i, n in enumerate(names)]
            )
            found = _pure.known(uses, same)
            if found is None:
                for use in uses:
                    discharged(use.program)  # here: programs may be nested deeply, few frames for each
                found = _pure(uses, same)
            out = found.bind(prim, params, operand=[read_whole(x) if isinstance(x, Ref) else x for x in args])
            finals = [(i, x) for (name, i), x in out.items() if name == "final"]
            for i, x in finals:
                write_whole(args[i], x)
            return [out["result", r] for r in range(len(out) - len(finals))]


def needs_references(program: Jaxpr) -> bool:
    """Whether a derivative rule of a function in the program needs the references themselves."""
    return lends(program) and not (current.trace is eval_trace or isinstance(current.trace, DischargeTrace))
