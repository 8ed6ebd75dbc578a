"""Linear solves. Their derivatives are linear solves.

The function that users call, `custom_linear_solve`, is made with `bedrax.autodiff` and lives there
(`bedrax.autodiff.implicit`); the primitive is here, with the parts that every column uses.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from bedrax.core.ir import Jaxpr
from bedrax.core.tables import Use, effect_rules, programs
from bedrax.core.tracing import Primitive

__all__ = ["linear_solve_p"]

# params: jaxprs, const_lengths (see `Parts`). Arguments: the constants of each program, then b. Results: x (with the
# types of b), then auxiliary ones of the solver.
linear_solve_p: Final = Primitive("custom_linear_solve", "solvers", multiple_results=True)


class Parts(NamedTuple):
    """Values for the four programs of a solve. Each program is ``consts, argument -> result``.

    `vecmat` and `transpose_solve` are None where the solve has no transpose.
    """

    matvec: object
    vecmat: object
    solve: object
    transpose_solve: object


@linear_solve_p.abstract
def _types(*avals, jaxprs, const_lengths):
    return jaxprs[2].out_avals


@programs.rule(linear_solve_p)
def _programs(params):
    """The operator and the solvers, each with its constants; of the results only those of `solve` are visible."""
    lengths, jaxprs = params["const_lengths"], params["jaxprs"]
    edge, uses = sum(lengths), []
    for k, program in enumerate(jaxprs):
        if program is not None:
            consts = range(sum(lengths[:k]), sum(lengths[: k + 1]))
            n, visible = len(program.invars) - len(consts), k == 2
            arguments = range(edge, edge + n)  # of the types of b, as all of them are
            results = tuple(range(len(program.outvars))) if visible else (None,) * len(program.outvars)
            uses.append(Use(program, (*consts, *arguments), results))
    return uses


# Only `solve` runs; it calls the others itself.
effect_rules.add(linear_solve_p, lambda *avals, jaxprs, const_lengths: jaxprs[2].effects)


def split_arguments(args: tuple[Any, ...] | list[Any], const_lengths: tuple[int, ...]) -> tuple[Parts, list[Any]]:
    """(the constants of each program, the right side)."""
    at, consts = 0, []
    for n in const_lengths:
        consts.append(list(args[at : at + n]))
        at += n
    return Parts(*consts), list(args[at:])


def solve_program(
    args: tuple[Any, ...], jaxprs: tuple[Jaxpr | None, ...], const_lengths: tuple[int, ...]
) -> tuple[Jaxpr, list[Any]]:
    """The program that a linear solve runs, and its arguments."""
    consts, b = split_arguments(args, const_lengths)
    return jaxprs[2], [*consts.solve, *b]
