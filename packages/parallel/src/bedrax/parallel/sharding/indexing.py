"""The split of results of indexing: complete axes keep their split, other axes must not be split."""

from bedrax.core import dtypes
from bedrax.lax.primitives import indexing as p
from bedrax.parallel.explicit import moving, resized, sharding_rules, sum_rules

_WHY = "and only a part of that axis is read"


def _partial(whole, part) -> list[int]:
    return [d for d, (n, m) in enumerate(zip(whole, part, strict=True)) if n != m]


sharding_rules.add(p.dynamic_slice_p, resized)


@sharding_rules.rule(p.dynamic_update_slice_p)
def _dynamic_update_slice(op, **params):
    """The update may be shorter than the operand along an axis. Then both have the same split there, or none."""
    whole, written = op.specs[:2]
    partial = _partial(op.types[0].shape, op.types[1].shape)
    op.unsplit(0, [d for d in partial if whole[d] != written[d]], "and only a part of that axis is written")
    return [op.joined(op.specs[:2])]


@sharding_rules.rule(p.gather_p)
def _gather(op, *, dimension_numbers, slice_sizes, **params):
    numbers = dimension_numbers
    operand, indices = op.specs[0], op.specs[1][:-1]
    batch = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    gone = {*numbers.collapsed_slice_dims, *batch}
    taken = [d for d in _partial(op.types[0].shape, slice_sizes) if d not in batch]
    op.unsplit(0, sorted({*taken, *numbers.collapsed_slice_dims}), _WHY)
    indices = list(indices)
    for d, i in batch.items():
        indices[i] = op.joined([(operand[d],), (indices[i],)])[0]
    kept = iter([e for d, e in enumerate(operand) if d not in gone])
    rest = iter(indices)
    return [tuple([next(kept) if d in numbers.offset_dims else next(rest) for d in range(len(op.outs[0].shape))])]


@sharding_rules.rule(p.scatter_p, p.scatter_add_p, p.scatter_sub_p, p.scatter_mul_p, p.scatter_min_p, p.scatter_max_p)
def _scatter(op, **params):
    return [op.specs[0]]


@sum_rules.rule(p.gather_p)
def _gather_sums(op, *, fill_value, mode, **params):
    """An element for an index outside must be the same sum: zero, or NaN."""
    outside = 0 if fill_value is None and dtypes.is_inexact(op.types[0].dtype) else fill_value
    return ((0,),) if outside == 0 or "fill" not in str(mode).lower() else ()


sum_rules.add(p.dynamic_slice_p, lambda op, **params: ((0,),))
sum_rules.add(p.dynamic_update_slice_p, lambda op, **params: ((0, 1),))
sum_rules.rule(p.scatter_add_p, p.scatter_sub_p)(lambda op, **params: ((0, 2),))  # not in the indices
sum_rules.add(p.scatter_p, lambda op, update_jaxpr, **params: ((0, 2),) if update_jaxpr is None else ())
sum_rules.add(p.scatter_mul_p, lambda op, **params: ((0,),))
moving.update((p.gather_p, p.dynamic_slice_p, p.dynamic_update_slice_p, p.scatter_p))
