"""Collectives as functions of others."""

import numpy as np

from bedrax import lax
from bedrax.core.avals import aval_of
from bedrax.core.tracing import pvary_p
from bedrax.lax.axes import merge_axes
from bedrax.lax.primitives.collectives import ragged_all_to_all_p
from bedrax.lax.tables import decompositions

_I32 = np.dtype(np.int32)


# Only types record the axes over which a value varies: the value is unchanged.
decompositions.add(pvary_p, lambda x, *, axes: x, "identity")


@decompositions.rule(ragged_all_to_all_p)
def _ragged_all_to_all(rows, output, *tables, axis_name, axis_index_groups):
    """Gather all rows and tables; take each row of the output from its last sender, if it has one."""
    every, first, count, into = (
        lax.all_gather(x, axis_name, axis_index_groups=axis_index_groups) for x in (rows, *tables[:3])
    )
    senders, per_sender = aval_of(every).shape[:2]
    own = lax.axis_index(axis_name)
    if axis_index_groups is not None:
        places = np.argsort(np.asarray(axis_index_groups).reshape(-1)) % len(axis_index_groups[0])
        own = lax.dynamic_index_in_dim(places.astype(np.int32), own, 0, keepdims=False)
    shape = (aval_of(output).shape[0], senders)

    def ours(table):
        column = lax.dynamic_index_in_dim(lax.convert_element_type(table, _I32), own, 1, keepdims=False)
        return lax.broadcast_in_dim(column, shape, (1,))

    row, sender = (lax.broadcasted_iota(_I32, shape, i) for i in (0, 1))
    at = lax.sub(row, ours(into))
    hit = lax.bitwise_and(lax.ge(at, np.int32(0)), lax.lt(at, ours(count)))
    source = lax.add(lax.add(ours(first), at), lax.mul(sender, np.int32(per_sender)))
    source = lax.reduce_max(lax.select(hit, source, lax.full(shape, np.int32(-1))), (1,))
    flat = merge_axes(every, 0)
    rest = aval_of(flat).shape[1:]
    numbers = lax.GatherDimensionNumbers(tuple(range(1, 1 + len(rest))), (0,), (0,))
    index = lax.expand_dims(lax.max(source, np.int32(0)), (1,))
    picked = lax.gather(flat, index, numbers, (1, *rest), mode="clip")
    arrives = lax.broadcast_in_dim(lax.ge(source, np.int32(0)), aval_of(output).shape, (0,))
    return lax.select(arrives, picked, output)
