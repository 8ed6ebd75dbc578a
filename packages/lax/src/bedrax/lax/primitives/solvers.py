"""Linear solves whose derivatives are linear solves.

The function that users call, `custom_linear_solve`, is made with `bedrax.autodiff` and lives there
(`bedrax.autodiff.implicit`); the primitive is here, with what every column needs to know of it.
"""

from __future__ import annotations

from typing import NamedTuple

from bedrax.core.ir import Jaxpr
from bedrax.core.tracing import Primitive

__all__ = ["linear_solve_p"]

# params: jaxprs, const_lengths (see `Parts`). Arguments: the constants of each program, then b. Results: x (with the
# types of b), then auxiliary ones of the solver.
linear_solve_p = Primitive("custom_linear_solve", "solvers", multiple_results=True)


class Parts(NamedTuple):
    """What belongs to each of the four programs of a solve: ``consts, argument -> result``.

    `vecmat` and `transpose_solve` are None where the solve has no transpose.
    """

    matvec: object
    vecmat: object
    solve: object
    transpose_solve: object


@linear_solve_p.abstract
def _types(*avals, jaxprs, const_lengths):
    return jaxprs[2].out_avals


linear_solve_p.effects_of = lambda *avals, jaxprs, const_lengths: jaxprs[2].effects


def split_arguments(args, const_lengths) -> tuple[Parts, list]:
    """(the constants of each program, the right side)."""
    at, consts = 0, []
    for n in const_lengths:
        consts.append(list(args[at : at + n]))
        at += n
    return Parts(*consts), list(args[at:])


def solve_program(args, jaxprs, const_lengths) -> tuple[Jaxpr, list]:
    """The program that a linear solve runs, and its arguments."""
    consts, b = split_arguments(args, const_lengths)
    return jaxprs[2], [*consts.solve, *b]
