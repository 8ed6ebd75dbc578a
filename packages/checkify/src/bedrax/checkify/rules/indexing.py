"""Checks of indices: windows must be inside of the arrays that they are read from, or written to."""

import numpy as np

from bedrax import lax
from bedrax.checkify.errors import OOBError
from bedrax.checkify.trace import any_of, check_rules
from bedrax.core import dims, dtypes
from bedrax.core.avals import aval_of
from bedrax.lax.primitives import indexing as p


def _check(trace, shape, sizes, axes, indices) -> None:
    """Check vectors of indices (in the last dimension) of windows of some sizes, along some axes of an array."""
    if not dims.is_constant_shape((*shape, *sizes)):
        raise NotImplementedError(
            f"index checks need a known shape of the array, got {shape}: check such programs for known sizes"
        )
    if not axes or 0 in aval_of(indices).shape:
        return
    last = np.array([shape[d] - sizes[d] for d in axes], np.int32)
    dtype = aval_of(indices).dtype
    if not dtypes.issubdtype(dtype, np.signedinteger) or dtype.itemsize < 4:
        # Unsigned numbers beyond the signed dtype become negative, so they are outside, too.
        indices = lax.convert_element_type(indices, np.dtype(np.int64 if dtype.itemsize == 8 else np.int32))
    rank = len(aval_of(indices).shape)
    last = lax.broadcast_in_dim(last.astype(aval_of(indices).dtype), aval_of(indices).shape, (rank - 1,))
    outside = lax.bitwise_or(lax.lt(indices, aval_of(indices).dtype.type(0)), lax.gt(indices, last))
    count = int(np.prod(aval_of(indices).shape))
    at = lax.argmax(lax.reshape(outside, (count,)), 0, np.int32)
    pick = lambda table, i: lax.dynamic_index_in_dim(table, i, 0, keepdims=False)
    axis = pick(np.array(axes, np.int32), lax.rem(at, np.int32(len(axes))))
    trace.fail(
        OOBError,
        any_of(outside),
        f"out-of-bounds indexing for array of shape {shape}: index {{}} is out of bounds for axis {{}} with size {{}}.",
        pick(lax.reshape(indices, (count,)), at),
        axis,
        pick(np.array(shape, np.int32), axis),
    )


def _vector(starts) -> object:
    return lax.concatenate([lax.reshape(lax.asarray(s), (1,)) for s in starts], 0) if starts else np.zeros(0, np.int32)


@check_rules.rule(p.dynamic_slice_p)
def _dynamic_slice(trace, x, *starts, slice_sizes):
    if OOBError in trace.kinds:
        shape = aval_of(x).shape
        _check(trace, shape, slice_sizes, tuple(range(len(shape))), _vector(starts))
    return p.dynamic_slice_p.bind(x, *starts, slice_sizes=slice_sizes)


@check_rules.rule(p.dynamic_update_slice_p)
def _dynamic_update_slice(trace, x, update, *starts):
    if OOBError in trace.kinds:
        shape = aval_of(x).shape
        _check(trace, shape, aval_of(update).shape, tuple(range(len(shape))), _vector(starts))
    return p.dynamic_update_slice_p.bind(x, update, *starts)


@check_rules.rule(p.gather_p)
def _gather(trace, x, indices, *, dimension_numbers, slice_sizes, mode, **params):
    if OOBError in trace.kinds and mode is not p.GatherScatterMode.CLIP:
        _check(trace, aval_of(x).shape, slice_sizes, dimension_numbers.start_index_map, indices)
    return p.gather_p.bind(
        x, indices, dimension_numbers=dimension_numbers, slice_sizes=slice_sizes, mode=mode, **params
    )


def _scatter(prim):
    @check_rules.rule(prim)
    def rule(trace, x, indices, updates, *, dimension_numbers, mode, **params):
        if OOBError in trace.kinds and mode is not p.GatherScatterMode.CLIP:
            shape = aval_of(x).shape
            sizes = p.window_sizes(len(shape), aval_of(updates).shape, dimension_numbers)
            _check(trace, shape, sizes, dimension_numbers.scatter_dims_to_operand_dims, indices)
        return prim.bind(x, indices, updates, dimension_numbers=dimension_numbers, mode=mode, **params)


for _prim in p.scatter_primitives:
    _scatter(_prim)
