"""The split of results of shaping."""

from __future__ import annotations

import math
from typing import Any

from bedrax.lax.primitives import shaping as p
from bedrax.parallel.explicit import elementwise, moving, resized, sharding_rules
from bedrax.parallel.specs import axes_of


@sharding_rules.rule(p.broadcast_in_dim_p)
def _broadcast(op, *, shape, broadcast_dimensions):
    spec = [None] * len(shape)
    for i, d in enumerate(broadcast_dimensions):
        if op.types[0].shape[i] == shape[d]:
            spec[d] = op.specs[0][i]
    return [tuple(spec)]


_ADVICE = "State the sharding of the result, with out_sharding=P(...)"


@sharding_rules.rule(p.reshape_p)
def _reshape(op, *, new_sizes, dimensions):
    if dimensions is not None:
        raise op.error(f"the axes are read in the order {tuple(dimensions)}", _ADVICE)
    old, spec, new = op.types[0].shape, op.specs[0], list(new_sizes)
    found: list[Any] = [None] * len(new)
    i = j = 0
    while i < len(old) or j < len(new):  # the next group of axes with a common size
        i1, j1 = i + 1, j + 1
        m, n = math.prod(old[i:i1]), math.prod(new[j:j1])
        while m != n and (i1 <= len(old) or j1 <= len(new)):
            if (m < n or j1 >= len(new)) and i1 < len(old):
                m, i1 = m * old[i1], i1 + 1
            elif j1 < len(new):
                n, j1 = n * new[j1], j1 + 1
            else:
                break
        _regroup(op, list(range(i, min(i1, len(old)))), list(range(j, min(j1, len(new)))), spec, new, found)
        i, j = i1, j1
    return [tuple(found)]


def _regroup(op, before, after, spec, new, found) -> None:
    """The axes `before` of the operand become those `after` of the result."""
    old = op.types[0].shape
    before = [d for d in before if old[d] != 1]
    after = [d for d in after if new[d] != 1]
    split = [d for d in before if spec[d] is not None]
    if not split:
        return
    if len(before) == len(after) == 1:
        found[after[0]] = spec[before[0]]
    elif len(after) == 1 and split == before[: len(split)]:  # leading axes that are merged
        entry = tuple(a for d in split for a in axes_of(spec[d]))
        found[after[0]] = op.kept(entry[0] if len(entry) == 1 else entry, new[after[0]], after[0])
    elif (shared := _over_several(op, before, after, spec, new)) is not None:
        for d, entry in zip(after, shared, strict=True):
            found[d] = entry
    else:
        raise op.error(
            f"axes {before} become axes {after} of shape {tuple(new)}, and how these are split is not clear", _ADVICE
        )


def _over_several(op, before, after, spec, new) -> list[Any] | None:
    """The entries of the axes `after`, if the blocks of the operand are blocks of the result; None if they are not.

    Both are read as one axis, whose leading mesh axes cut it into blocks: these axes go to the first axes of the result,
    which must be cut to single rows before the next one is cut.
    """
    old = op.types[0].shape
    left: list[Any] = []
    for i, d in enumerate(before):  # the axes that cut the joint axis: all before the last one cut it to single rows
        if spec[d] is None:
            if any(spec[e] is not None for e in before[i:]):
                return None
            break
        left += axes_of(spec[d])
        if old[d] != op.parts(spec[d]) and any(spec[e] is not None for e in before[i + 1 :]):
            return None
    entries = []
    for d in after:
        own: list[Any] = []
        while left and new[d] % op.parts((*own, left[0])) == 0:
            own.append(left.pop(0))
        entries.append((own[0] if len(own) == 1 else tuple(own)) if own else None)
        if left and op.parts(tuple(own)) != new[d]:
            return None
    return None if left else entries


sharding_rules.add(p.transpose_p, lambda op, *, permutation: [tuple([op.specs[0][d] for d in permutation])])


@sharding_rules.rule(p.squeeze_p)
def _squeeze(op, *, dimensions):
    return [tuple([e for d, e in enumerate(op.specs[0]) if d not in dimensions])]


sharding_rules.add(p.rev_p, lambda op, **params: [op.specs[0]])


sharding_rules.rule(p.slice_p, p.pad_p, p.tile_p)(resized)


@sharding_rules.rule(p.concatenate_p)
def _concatenate(op, *, dimension):
    spec = op.joined(op.specs)
    return [
        (*spec[:dimension], op.kept(spec[dimension], op.outs[0].shape[dimension], dimension), *spec[dimension + 1 :])
    ]


@sharding_rules.rule(p.stack_p)
def _stack(op, *, axis):
    spec = op.joined(op.specs)
    return [(*spec[:axis], None, *spec[axis:])]


@sharding_rules.rule(p.unstack_p)
def _unstack(op, *, axis):
    op.unsplit(0, (axis,), "along which it is taken apart")
    return [tuple([e for d, e in enumerate(op.specs[0]) if d != axis])] * len(op.outs)


@sharding_rules.rule(p.split_p)
def _split(op, *, axis, sizes):
    return [tuple([op.kept(e, n, d) for d, (e, n) in enumerate(zip(op.specs[0], o.shape))]) for o in op.outs]


sharding_rules.add(p.iota_p, elementwise)  # no operands
sharding_rules.add(p.empty_p, elementwise)

# Elements only move; padding is part of the sum. All other rows of partial sums follow from the derivatives.
moving.update(
    (
        p.broadcast_in_dim_p,
        p.reshape_p,
        p.transpose_p,
        p.squeeze_p,
        p.rev_p,
        p.slice_p,
        p.concatenate_p,
        p.stack_p,
        p.unstack_p,
        p.split_p,
        p.tile_p,
    )
)
