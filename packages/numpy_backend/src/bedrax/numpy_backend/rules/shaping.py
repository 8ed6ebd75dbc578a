"""NumPy evaluation of the shaping primitives."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from bedrax.lax.primitives import shaping
from bedrax.numpy_backend.tables import Exactness, exact_rules, numpy_rules, source_rules

rule: Final = numpy_rules.rule
written: Final = source_rules.rule


@rule(shaping.broadcast_in_dim_p)
def _broadcast_in_dim(x, *, shape, broadcast_dimensions):
    if broadcast_dimensions:
        place = [1] * len(shape)
        for size, axis in zip(x.shape, broadcast_dimensions):
            place[axis] = size
        x = x.reshape(place)
    return _spread(x, shape)


def _spread(x, shape):
    if math.prod(shape) > 512:
        return np.broadcast_to(x, shape)
    out = np.empty(shape, x.dtype)  # copying few elements is faster than making a view
    out[...] = x
    return out


@written(shaping.broadcast_in_dim_p)
def _broadcast_in_dim_source(write, eqn, x):
    shape, axes = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    given = eqn.invars[0].aval.shape
    if given == shape:
        return x
    place = [1] * len(shape)
    for size, axis in zip(given, axes):
        place[axis] = size
    if axes != tuple(range(len(shape) - len(axes), len(shape))):  # else broadcasting aligns it
        x = f"{x}.reshape({tuple(place)})"
    return f"{write.bind(_spread, 'broadcast')}({x}, {shape})"


@rule(shaping.reshape_p)
def _reshape(x, *, new_sizes, dimensions):
    return (x if dimensions is None else x.transpose(dimensions)).reshape(new_sizes)


@written(shaping.reshape_p)
def _reshape_source(write, eqn, x):
    order = eqn.params["dimensions"]
    return f"{x if order is None else f'{x}.transpose({order})'}.reshape({eqn.params['new_sizes']})"


@rule(shaping.transpose_p)
def _transpose(x, *, permutation):
    return x.transpose(permutation)


@written(shaping.transpose_p)
def _transpose_source(write, eqn, x):
    return f"{x}.transpose({eqn.params['permutation']})"


@rule(shaping.squeeze_p)
def _squeeze(x, *, dimensions):
    return x.reshape([n for i, n in enumerate(x.shape) if i not in dimensions])


@written(shaping.squeeze_p)
def _squeeze_source(write, eqn, x):
    return f"{x}.reshape({eqn.outvars[0].aval.shape})"


@rule(shaping.rev_p)
def _rev(x, *, dimensions):
    return np.flip(x, dimensions) if dimensions else x


@rule(shaping.slice_p)
def _slice(x, *, start_indices, limit_indices, strides=None):
    steps = strides or (1,) * x.ndim
    return x[tuple(map(slice, start_indices, limit_indices, steps))]


@written(shaping.slice_p)
def _slice_source(write, eqn, x):
    starts, limits = eqn.params["start_indices"], eqn.params["limit_indices"]
    steps = eqn.params["strides"] or (1,) * len(starts)
    parts = [f"{i}:{j}" if k == 1 else f"{i}:{j}:{k}" for i, j, k in zip(starts, limits, steps)]
    return f"{x}[{', '.join(parts)}]" if parts else x


@rule(shaping.pad_p)
def _pad(x, padding_value, *, padding_config):
    # First the interior (into an array whose size ignores negative edges), then the edges.
    sizes = [max(n + (n - 1) * inner, 0) for n, (_, _, inner) in zip(x.shape, padding_config)]
    if any(inner for _, _, inner in padding_config):
        spread = np.full(sizes, padding_value, x.dtype)
        spread[tuple(slice(None, None, inner + 1) for _, _, inner in padding_config)] = x
        x = spread
    out = np.full([n + low + high for n, (low, high, _) in zip(sizes, padding_config)], padding_value, x.dtype)
    source, target = [], []
    for n, (low, high, _) in zip(sizes, padding_config):
        first, last = max(0, -low), n - max(0, -high)
        count = max(0, last - first)
        source.append(slice(first, first + count))
        target.append(slice(max(0, low), max(0, low) + count))
    if all(s.stop > s.start for s in source):
        out[tuple(target)] = x[tuple(source)]
    return out


@rule(shaping.concatenate_p)
def _concatenate(*xs, dimension):
    return np.concatenate(xs, dimension)


@rule(shaping.stack_p)
def _stack(*xs, axis):
    return np.stack(xs, axis)


@rule(shaping.unstack_p)
def _unstack(x, *, axis):
    return [np.asarray(part) for part in np.moveaxis(x, axis, 0)]


@rule(shaping.split_p)
def _split(x, *, sizes, axis):
    return np.split(x, np.cumsum(sizes)[:-1], axis) if sizes else []


@rule(shaping.tile_p)
def _tile(x, *, reps):
    return np.tile(x, reps)


@rule(shaping.iota_p)
def _iota(*, dtype, shape, dimension):
    place = [1] * len(shape)
    place[dimension] = shape[dimension]
    return np.broadcast_to(np.arange(shape[dimension]).astype(dtype).reshape(place), shape)


@rule(shaping.empty_p)
def _empty(*, shape, dtype):
    return np.zeros(shape, dtype)  # unspecified values; zeros are reproducible


for _prim in (
    shaping.broadcast_in_dim_p,
    shaping.reshape_p,
    shaping.transpose_p,
    shaping.squeeze_p,
    shaping.rev_p,
    shaping.slice_p,
    shaping.pad_p,
    shaping.concatenate_p,
    shaping.stack_p,
    shaping.unstack_p,
    shaping.split_p,
    shaping.tile_p,
):
    exact_rules.add(_prim, lambda types, **params: Exactness.BITS)


@exact_rules.rule(shaping.iota_p)
def _iota_is_exact(types, *, dtype, shape, dimension):
    exact = dtype.kind in "iu" or (dtype in (np.float32, np.float64) and shape[dimension] <= 1 << 24)
    return Exactness.BITS if exact else None
