"""Contractions as dense products."""

import numpy as np

from bedrax import lax
from bedrax.core.avals import aval_of
from bedrax.lax.primitives import contractions as p
from bedrax.lax.tables import decompositions


@decompositions.rule(p.ragged_dot_general_p)
def _ragged_dot_general(
    lhs, rhs, sizes, *offset, ragged_dot_dimension_numbers, precision=None, preferred_element_type=None
):
    """A ragged product as one dense product: `lhs` once per group, zero outside the group."""
    numbers = ragged_dot_dimension_numbers
    x, y, s = aval_of(lhs), aval_of(rhs), aval_of(sizes)
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    kind, prefix = p.ragged_kind(x.ndim, numbers)
    options = dict(precision=precision, preferred_element_type=preferred_element_type)
    if kind == "batch":
        return p.dot_general_p.bind(lhs, rhs, dimension_numbers=numbers.dot_dimension_numbers, **options)
    (cut,) = numbers.lhs_ragged_dimensions
    sizes = lax.convert_element_type(sizes, np.dtype(np.int32))
    ends = lax.cumsum(sizes, s.ndim - 1)
    starts = lax.sub(ends, sizes)
    if offset:  # the group of matrix i is i + offset; a group that does not exist is empty
        (group,) = numbers.rhs_group_dimensions
        groups = y.shape[group]
        first = lax.convert_element_type(lax.squeeze(offset[0], (0,)), np.dtype(np.int32))
        wanted = lax.add(lax.iota(np.int32, groups), first)
        chosen = lax.eq(
            lax.broadcast_in_dim(wanted, (s.shape[-1], groups), (1,)),
            lax.broadcasted_iota(np.int32, (s.shape[-1], groups), 0),
        )
        pick = dict(dimension_numbers=(((s.ndim - 1,), (0,)), ((), ())), precision=None, preferred_element_type=None)
        chosen = lax.convert_element_type(chosen, np.dtype(np.int32))
        starts, ends = (p.dot_general_p.bind(starts, chosen, **pick), p.dot_general_p.bind(ends, chosen, **pick))
    groups = aval_of(ends).shape[-1]
    shape = (groups, *x.shape)
    # `starts` and `ends` are indexed by the prefix, then the group; both masks are by group, then lhs.
    at = (0,) if s.ndim == 1 else (*[d + 1 for d in prefix], 0)

    def spread(v):
        order = sorted(range(len(at)), key=at.__getitem__)
        v = lax.transpose(v, tuple(order)) if len(at) > 1 else v
        return lax.broadcast_in_dim(v, shape, tuple(sorted(at)))

    position = lax.broadcasted_iota(np.int32, shape, cut + 1)
    inside = lax.bitwise_and(lax.ge(position, spread(starts)), lax.lt(position, spread(ends)))
    stacked = lax.broadcast_in_dim(lhs, shape, tuple(range(1, x.ndim + 1)))
    masked = lax.select(inside, stacked, lax.full_like(stacked, 0))
    up = lambda ds: tuple([d + 1 for d in ds])
    if kind == "free":
        dims = (((0, *up(lc)), (*numbers.rhs_group_dimensions, *rc)), (up(lb), rb))
        return p.dot_general_p.bind(masked, rhs, dimension_numbers=dims, **options)
    out = p.dot_general_p.bind(masked, rhs, dimension_numbers=((up(lc), rc), (up(lb), rb)), **options)
    rank, n = len(aval_of(out).shape), len(lb)
    return lax.transpose(out, (n, *range(n), *range(n + 1, rank)))


@decompositions.rule(p.scaled_dot_p)
def _scaled_dot(lhs, rhs, lhs_scale, rhs_scale, *, dimension_numbers, preferred_element_type):
    def scaled(x, scale):
        shape, blocks = aval_of(x).shape, aval_of(scale).shape
        split = [n for size, b in zip(shape, blocks, strict=True) for n in ((b,) if size == b else (b, size // b))]
        kept, i = [], 0
        for size, b in zip(shape, blocks, strict=True):
            kept.append(i)
            i += 1 if size == b else 2
        scale = lax.convert_element_type(scale, preferred_element_type)
        scale = lax.reshape(lax.broadcast_in_dim(scale, tuple(split), tuple(kept)), shape)
        return lax.mul(lax.convert_element_type(x, preferred_element_type), scale)

    return p.dot_general_p.bind(
        scaled(lhs, lhs_scale),
        scaled(rhs, rhs_scale),
        dimension_numbers=dimension_numbers,
        precision=None,
        preferred_element_type=preferred_element_type,
    )
