"""Batching of the sorting primitives: along the same axis, for any mapped axis."""

from bedrax.batching.rules.shaping import common_dim
from bedrax.batching.tables import batch_rules, to_axis
from bedrax.core.avals import aval_of
from bedrax.lax.primitives import sorting as p
from bedrax.lax.primitives.shaping import canonical_axis


@batch_rules.rule(p.sort_p)
def _sort(axis, args, dims, *, dimension, is_stable, num_keys):
    dim = common_dim(dims)
    operands = [to_axis(x, d, axis.size, dim) for x, d in zip(args, dims)]
    out = p.sort_p.bind(*operands, dimension=dimension + (dimension >= dim), is_stable=is_stable, num_keys=num_keys)
    return out, [dim] * len(out)


@batch_rules.rule(p.top_k_p)
def _top_k(axis_data, args, dims, *, axis, **params):
    (x,), (dim,) = args, dims
    return p.top_k_p.bind(x, axis=axis + (axis >= dim), **params), [dim, dim]


@batch_rules.rule(p.approx_top_k_p)
def _approx_top_k(axis, args, dims, *, reduction_dimension, aggregate_to_topk, k, **params):
    (x,), (dim,) = args, dims
    shape = aval_of(x).shape
    along = canonical_axis(reduction_dimension, len(shape) - 1)
    if not aggregate_to_topk:  # the number of candidates depends on the rank
        n, override = shape[along + (along >= dim)], params["reduction_input_size_override"]
        k = p.approx_output_size(n, len(shape) - 1, k, params["recall_target"], override, False)
    out = p.approx_top_k_p.bind(x, k=k, reduction_dimension=along + (along >= dim), aggregate_to_topk=True, **params)
    return out, [dim, dim]
