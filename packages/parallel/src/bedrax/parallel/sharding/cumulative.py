"""Partial sums of recurrences: linear in what is added. Cumulative extremes of parts are parts."""

from bedrax.lax.primitives import cumulative as p
from bedrax.parallel.explicit import extremes, sum_rules
from bedrax.parallel.specs import UnreducedKind

extremes.update({p.cummax_p: UnreducedKind.max, p.cummin_p: UnreducedKind.min})

sum_rules.add(p.linear_recurrence_p, lambda op, **params: ((1,),))
