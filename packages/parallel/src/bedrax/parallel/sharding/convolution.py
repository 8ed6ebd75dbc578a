"""The split of convolutions: along the batch, and along space, where neighbours exchange what windows cover."""

from bedrax.lax.primitives import convolution as p
from bedrax.parallel.explicit import sharding_rules


@sharding_rules.rule(p.conv_general_dilated_p)
def _conv(op, *, dimension_numbers, feature_group_count=1, batch_group_count=1, **params):
    numbers = dimension_numbers
    batch, features, *space = numbers.lhs_spec
    fixed = [features, *space, batch] if batch_group_count > 1 else [features]
    op.unsplit(0, fixed, "whose parts meet in each element of the result")
    op.unsplit(1, range(len(op.specs[1])), "and kernels are whole on each device")
    spec = [None] * len(op.specs[0])
    for d, e in zip((batch, *space), (numbers.out_spec[0], *numbers.out_spec[2:]), strict=True):
        spec[e] = op.kept(op.specs[0][d], op.outs[0].shape[e], e)
    return [tuple(spec)]
