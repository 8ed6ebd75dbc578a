"""Derivatives of the shaping primitives: all linear; a transpose puts elements back, adding up repeated ones."""

from __future__ import annotations

import numpy as np

from bedrax.autodiff.tables import Zero, instantiate, is_undefined, linear, zero
from bedrax.core import dims
from bedrax.core.avals import aval_of
from bedrax.lax.primitives import elementwise, shaping
from bedrax.lax.primitives import shaping as p
from bedrax.lax.primitives.placement import cotangent_type, placed_call
from bedrax.lax.primitives.reductions import reduce_sum


def _zero(x) -> np.ndarray:
    """The scalar zero of a value's dtype."""
    return np.zeros((), aval_of(x).dtype)


def _sum(x, axes):
    return reduce_sum(x, axes) if axes else x


def _broadcast_in_dim(ct, x, *, shape, broadcast_dimensions):
    repeated = [
        d
        for n, d in zip(x.aval.shape, broadcast_dimensions)
        if dims.definitely_equal(n, 1) and not dims.definitely_equal(shape[d], 1)
    ]
    new = [d for d in range(len(shape)) if d not in broadcast_dimensions]
    expanded = [i for i, d in enumerate(broadcast_dimensions) if d in repeated]

    def summed(ct):
        ct = _sum(ct, tuple(new + repeated))
        return p.expand_dims(ct, expanded) if expanded else ct

    place = cotangent_type(x.aval).split if x.aval.split is not None else None
    if place is not None and place.partial and aval_of(ct).split != place:
        return [placed_call(place, summed, ct)]  # each device sums its part
    return [summed(ct)]


def _reshape(ct, x, *, new_sizes, dimensions):
    shape = x.aval.shape
    if dimensions is None:
        return [p.reshape(ct, shape)]
    return [p.transpose(p.reshape(ct, [shape[d] for d in dimensions]), np.argsort(dimensions))]


def _slice(ct, x, *, start_indices, limit_indices, strides=None):
    config = []
    for i, (n, lo, hi) in enumerate(zip(x.aval.shape, start_indices, limit_indices)):
        step = 1 if strides is None else strides[i]
        kept = aval_of(ct).shape[i]
        end = hi if step == 1 else lo + dims.dilate_dim(kept, step)
        config.append((lo, n - end, step - 1))
    return [p.pad(ct, _zero(ct), config)]


def _pad(ct, x, padding_value, *, padding_config):
    """The operand's elements are sliced out of the cotangent; the rest of its sum belongs to the padding value."""
    inner = p.pad(ct, _zero(ct), [(-low, -high, 0) for low, high, _ in padding_config])
    if any(interior for _, _, interior in padding_config):
        for axis, (_, _, interior) in enumerate(padding_config):
            inner = p.slice_in_dim(inner, None, None, interior + 1, axis)
    ct_value = None
    if is_undefined(padding_value):
        everything = reduce_sum(ct, tuple(range(len(padding_config))))
        ct_value = elementwise.sub(everything, reduce_sum(inner, tuple(range(len(padding_config)))))
    return [inner if is_undefined(x) else None, ct_value]


def _concatenate(ct, *xs, dimension):
    out, start = [], 0
    for x in xs:
        size = (x.aval if is_undefined(x) else aval_of(x)).shape[dimension]
        out.append(p.slice_in_dim(ct, start, start + size, 1, dimension) if is_undefined(x) else None)
        start = start + size
    return out


def _stack(ct, *xs, axis):
    return [p.index_in_dim(ct, i, axis, keepdims=False) if is_undefined(x) else None for i, x in enumerate(xs)]


def _unstack(cts, x, *, axis):
    return [Zero(x.aval)] if all(type(ct) is Zero for ct in cts) else [p.stack(map(instantiate, cts), axis)]


def _split(cts, x, *, sizes, axis):
    return [Zero(x.aval)] if all(type(ct) is Zero for ct in cts) else [p.concatenate(map(instantiate, cts), axis)]


def _tile(ct, x, *, reps):
    split = [n for pair in zip(reps, x.aval.shape) for n in pair]
    return [_sum(p.reshape(ct, split), tuple(range(0, len(split), 2)))]


linear(shaping.broadcast_in_dim_p, _broadcast_in_dim)
linear(shaping.reshape_p, _reshape)
linear(shaping.transpose_p, lambda ct, x, *, permutation: [p.transpose(ct, np.argsort(permutation))])
linear(shaping.squeeze_p, lambda ct, x, *, dimensions: [p.reshape(ct, x.aval.shape)])
linear(shaping.rev_p, lambda ct, x, *, dimensions: [p.rev(ct, dimensions)])
linear(shaping.slice_p, _slice)
linear(shaping.pad_p, _pad)
linear(shaping.concatenate_p, _concatenate)
linear(shaping.stack_p, _stack)
linear(shaping.unstack_p, _unstack)
linear(shaping.split_p, _split)
linear(shaping.tile_p, _tile)
zero(shaping.iota_p, shaping.empty_p)
