"""The split of convolutions: along the batch."""

from bedrax.lax.primitives import convolution as p
from bedrax.parallel.explicit import sharding_rules


@sharding_rules.rule(p.conv_general_dilated_p)
def _conv(op, *, dimension_numbers, feature_group_count=1, batch_group_count=1, **params):
    numbers = dimension_numbers
    batch, *others = numbers.lhs_spec
    op.unsplit(0, [*others, batch] if batch_group_count > 1 else others, "which is no batch")
    op.unsplit(1, range(len(op.specs[1])), "and kernels are whole on each device")
    spec = [None] * len(op.specs[0])
    spec[numbers.out_spec[0]] = op.specs[0][batch]
    return [tuple(spec)]
