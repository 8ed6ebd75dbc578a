"""Differentiation of linear solves: ``A x = b`` gives ``A dx = db - dA x``; the transpose solves with ``A^T``."""

from bedrax.autodiff.forward import jvp_jaxpr
from bedrax.autodiff.tables import Zero, add_tangents, instantiate, jvp_rules, spread, transpose_rules
from bedrax.core.ir import call_flat
from bedrax.lax.primitives.elementwise import neg
from bedrax.lax.primitives.solvers import Parts, linear_solve_p, split_arguments


@jvp_rules.rule(linear_solve_p, kind="program")
def _jvp(primals, tangents, *, jaxprs, const_lengths):
    consts, b = split_arguments(primals, const_lengths)
    const_tangents, right = split_arguments(tangents, const_lengths)
    n = len(b)
    out = linear_solve_p.bind(*primals, jaxprs=jaxprs, const_lengths=const_lengths)
    x = out[:n]
    active = tuple(type(t) is not Zero for t in const_tangents.matvec)
    if any(active):
        pushed, arriving = jvp_jaxpr(jaxprs[0], (*active, *([False] * n)))
        live = [t for t in const_tangents.matvec if type(t) is not Zero]
        values = call_flat(pushed, [*consts.matvec, *x, *live])
        change = spread(values[n:], arriving, x)
        right = [add_tangents(t, c if type(c) is Zero else neg(c)) for t, c in zip(right, change, strict=True)]
    auxiliary = [Zero.of(v) for v in out[n:]]
    if all(type(t) is Zero for t in right):
        return out, [Zero.of(v) for v in out]
    fixed = primals[: sum(const_lengths)]
    dx = linear_solve_p.bind(*fixed, *map(instantiate, right), jaxprs=jaxprs, const_lengths=const_lengths)[:n]
    return out, [*dx, *auxiliary]


@transpose_rules.rule(linear_solve_p, kind="program")
def _transpose(cts, *args, jaxprs, const_lengths):
    if jaxprs[3] is None:
        raise TypeError("custom_linear_solve needs transpose_solve (or symmetric=True) for reverse mode")
    consts, b = split_arguments(args, const_lengths)
    swap = lambda parts: Parts(parts[1], parts[0], parts[3], parts[2])
    out = linear_solve_p.bind(
        *(c for cs in swap(consts) for c in cs),
        *map(instantiate, cts[: len(b)]),
        jaxprs=tuple(swap(jaxprs)),
        const_lengths=tuple(swap(const_lengths)),
    )
    return [None] * sum(const_lengths) + list(out[: len(b)])
