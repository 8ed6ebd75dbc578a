"""Derivatives of the sorting primitives: tangents are permuted like their elements."""

from bedrax.autodiff.tables import Zero, jvp_rules, not_transposable
from bedrax.core import positions
from bedrax.core.avals import aval_of
from bedrax.lax.primitives import sorting as p
from bedrax.lax.primitives.shaping import broadcasted_iota, canonical_axis

_WHY = "not linear; its jvp gathers the tangents, which is"


@jvp_rules.rule(p.sort_p)
def _sort(primals, tangents, *, dimension, is_stable, num_keys):
    aval = aval_of(primals[0])
    if all(type(t) is Zero for t in tangents):
        out = p.sort_p.bind(*primals, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
        return out, [Zero.of(x) for x in out]
    n = aval.shape[dimension]
    with positions.scope(n):
        index = broadcasted_iota(positions.dtype_for(n), aval.shape, dimension)
        *out, order = p.sort_p.bind(*primals, index, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
        moved = [Zero.of(x) if type(t) is Zero else p.take_along(t, order, dimension) for x, t in zip(out, tangents)]
    return out, moved


def _selection(prim):
    def rule(primals, tangents, **params):
        (x,), (t,) = primals, tangents
        values, index = prim.bind(x, **params)
        no_tangent = Zero.of(index)
        if type(t) is Zero:
            return [values, index], [Zero.of(values), no_tangent]
        axis = params["axis"] if "axis" in params else params["reduction_dimension"]
        axis = canonical_axis(axis, len(aval_of(x).shape))
        return [values, index], [p.take_along(t, index, axis), no_tangent]

    jvp_rules.add(prim, rule)


_selection(p.top_k_p)
_selection(p.approx_top_k_p)
not_transposable(p.sort_p, p.top_k_p, p.approx_top_k_p, why=_WHY)
