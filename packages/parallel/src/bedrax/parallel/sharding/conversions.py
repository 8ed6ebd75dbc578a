"""The split of conversions, and their partial sums: rounding to integers is not linear."""

import numpy as np

from bedrax.core import dtypes
from bedrax.lax.primitives import conversions as p
from bedrax.parallel.explicit import sharding_rules, sum_rules


@sum_rules.rule(p.convert_element_type_p)
def _convert(op, *, new_dtype, **params):
    old, new = op.types[0].dtype, op.outs[0].dtype
    return () if dtypes.is_inexact(old) and not dtypes.is_inexact(new) or new == np.bool_ else ((0,),)


@sharding_rules.rule(p.bitcast_convert_type_p)
def _bitcast(op, **params):
    """The bits of an element become, or come from, a new last axis. Those of one that is split are gathered."""
    spec, rank = op.specs[0], len(op.outs[0].shape)
    return [(*spec[:rank], *[None] * (rank - len(spec)))]
