"""Batching of linear solves: every right side and solution is mapped, for any mapped parts of the system."""

from bedrax.batching.tables import batch_rules, to_front
from bedrax.batching.trace import batch_jaxpr
from bedrax.lax.primitives.solvers import linear_solve_p, split_arguments


@batch_rules.rule(linear_solve_p, kind="program")
def _linear_solve(axis, args, dims, *, jaxprs, const_lengths):
    const_dims, b_dims = split_arguments(dims, const_lengths)
    consts, b = split_arguments(args, const_lengths)
    programs = tuple(
        None if program is None else batch_jaxpr(program, axis, (*ds, *([0] * len(b))), True)[0]
        for program, ds in zip(jaxprs, const_dims, strict=True)
    )
    b = [to_front(x, d, axis.size) for x, d in zip(b, b_dims, strict=True)]
    out = linear_solve_p.bind(*(c for cs in consts for c in cs), *b, jaxprs=programs, const_lengths=const_lengths)
    return out, [0] * len(out)
