"""Batching of the shaping primitives: the mapped axis keeps its position where possible."""

from __future__ import annotations

from typing import Final

import numpy as np

from bedrax.batching.tables import batch_rules, to_axis
from bedrax.core import dims as core_dims
from bedrax.core.avals import aval_of
from bedrax.lax import filling
from bedrax.lax.axes import after_removal, insert, move_axis, shift
from bedrax.lax.primitives import elementwise, shaping
from bedrax.lax.primitives.shaping import pad, squeeze

rule: Final = batch_rules.rule


def common_dim(dims: list[int | None]) -> int:
    """The common position of the mapped axis of several operands: that of the first mapped operand."""
    return next(d for d in dims if d is not None)


@rule(shaping.broadcast_in_dim_p)
def _broadcast_in_dim(axis, args, dims, *, shape, broadcast_dimensions):
    (x,), (dim,) = args, dims
    # Directly after the result axis that holds the operand's axis before the mapped one.
    place = broadcast_dimensions[dim - 1] + 1 if dim else 0
    return (
        shaping.broadcast_in_dim_p.bind(
            x,
            shape=insert(shape, place, axis.size),
            broadcast_dimensions=insert(shift(broadcast_dimensions, place), dim, place),
        ),
        place,
    )


@rule(shaping.reshape_p)
def _reshape(axis, args, dims, *, new_sizes, dimensions):
    x, (dim,) = args[0], dims
    if dimensions is not None:
        x = shaping.transpose(move_axis(x, dim, 0), (0, *(d + 1 for d in dimensions)))
        dim = 0
    elif dim:
        shape = aval_of(x).shape
        if len(new_sizes) >= dim and core_dims.definitely_equal_shape(shape[:dim], new_sizes[:dim]):
            # The axes before the mapped one keep their sizes. The other axes are reshaped behind it.
            return shaping.reshape(x, insert(new_sizes, dim, axis.size)), dim
        x, dim = move_axis(x, dim, 0), 0
    return shaping.reshape(x, (axis.size, *new_sizes)), 0


@rule(shaping.transpose_p)
def _transpose(axis, args, dims, *, permutation):
    (x,), (dim,) = args, dims
    return shaping.transpose(x, (dim, *shift(permutation, dim))), 0


@rule(shaping.squeeze_p)
def _squeeze(axis, args, dims, *, dimensions):
    (x,), (dim,) = args, dims
    removed = shift(dimensions, dim)
    return squeeze(x, removed), after_removal(dim, removed)


@rule(shaping.rev_p)
def _rev(axis, args, dims, *, dimensions):
    (x,), (dim,) = args, dims
    return shaping.rev(x, shift(dimensions, dim)), dim


@rule(shaping.slice_p)
def _slice(axis, args, dims, *, start_indices, limit_indices, strides=None):
    (x,), (dim,) = args, dims
    return (
        shaping.slice_p.bind(
            x,
            start_indices=insert(start_indices, dim, 0),
            limit_indices=insert(limit_indices, dim, axis.size),
            strides=None if strides is None else insert(strides, dim, 1),
        ),
        dim,
    )


@rule(shaping.pad_p)
def _pad(axis, args, dims, *, padding_config):
    x, value = args
    dim, value_dim = dims
    if value_dim is None:
        return pad(x, value, insert(padding_config, dim, (0, 0, 0))), dim
    # Each element of the batch has its own padding value: pad with any value, then select the own value in the padding.
    x = to_axis(x, dim, axis.size, 0)
    config = insert(padding_config, 0, (0, 0, 0))
    dtype = aval_of(x).dtype
    padded = pad(x, np.zeros((), dtype), config)
    inside = pad(filling.full(aval_of(x).shape, True, np.bool_), np.False_, config)
    values = shaping.broadcast_in_dim(value, aval_of(padded).shape, (0,))
    return elementwise.select(inside, padded, values), 0


@rule(shaping.concatenate_p)
def _concatenate(axis, args, dims, *, dimension):
    dim = common_dim(dims)
    xs = [to_axis(x, d, axis.size, dim) for x, d in zip(args, dims)]
    return shaping.concatenate_p.bind(*xs, dimension=dimension + (dimension >= dim)), dim


@rule(shaping.stack_p)
def _stack(axis_data, args, dims, *, axis):
    dim = common_dim(dims)
    xs = [to_axis(x, d, axis_data.size, dim) for x, d in zip(args, dims)]
    # `axis` is a position between the axes of an element. If it is before the mapped axis, that axis moves by one.
    new = axis + (axis > dim)
    return shaping.stack_p.bind(*xs, axis=new), dim + (new <= dim)


@rule(shaping.unstack_p)
def _unstack(axis_data, args, dims, *, axis):
    (x,), (dim,) = args, dims
    (axis,) = shift((axis,), dim)
    out = shaping.unstack_p.bind(x, axis=axis)
    return out, [after_removal(dim, (axis,))] * len(out)


@rule(shaping.split_p)
def _split(axis_data, args, dims, *, sizes, axis):
    (x,), (dim,) = args, dims
    out = shaping.split_p.bind(x, sizes=sizes, axis=axis + (axis >= dim))
    return out, [dim] * len(out)


@rule(shaping.tile_p)
def _tile(axis, args, dims, *, reps):
    (x,), (dim,) = args, dims
    return shaping.tile_p.bind(x, reps=insert(reps, dim, 1)), dim


batch_rules.absent(shaping.iota_p, shaping.empty_p, why="it has no operands")
