"""Batching of conversions."""

from bedrax.batching.tables import batch_rules, elementwise, to_front
from bedrax.core.avals import aval_of
from bedrax.lax.primitives import conversions as p

elementwise(p.reduce_precision_p)


@batch_rules.rule(p.convert_element_type_p, kind="elementwise")
def _convert(axis, args, dims, *, new_dtype, weak_type):
    # A requested placement names the axes of the unmapped array; the compiler places the mapped one.
    return p.convert_element_type_p.bind(*args, new_dtype=new_dtype, weak_type=weak_type), dims[0]


@batch_rules.rule(p.bitcast_convert_type_p)
def _bitcast(axis, args, dims, *, new_dtype):
    (x,), (dim,) = args, dims
    # The operation may add or remove the last axis, so the mapped axis must not be last.
    if dim == len(aval_of(x).shape) - 1:
        x, dim = to_front(x, dim, axis.size), 0
    return p.bitcast_convert_type_p.bind(x, new_dtype=new_dtype), dim
