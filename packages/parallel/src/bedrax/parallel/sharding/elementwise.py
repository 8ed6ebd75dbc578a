"""Partial sums of elementwise operations: which operands may be parts of a sum."""

from bedrax.core import dtypes
from bedrax.lax.primitives import elementwise as p
from bedrax.parallel.explicit import additions, extremes, moving, sum_rules
from bedrax.parallel.specs import UnreducedKind

additions.update((p.add_p, p.sub_p, p.add_any_p))
extremes.update({p.max_p: UnreducedKind.max, p.min_p: UnreducedKind.min})
moving.update((p.copy_p, p.select_n_p, p.stop_gradient_p))
sum_rules.add(p.div_p, lambda op: ((0,),) if dtypes.is_inexact(op.outs[0].dtype) else ())
sum_rules.add(p.stop_gradient_p, lambda op: ((0,),))
sum_rules.add(p.select_n_p, lambda op: (tuple(range(1, len(op.types))),))
