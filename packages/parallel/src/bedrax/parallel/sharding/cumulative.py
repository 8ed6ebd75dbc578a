"""Partial sums of recurrences: linear in what is added."""

from bedrax.lax.primitives import cumulative as p
from bedrax.parallel.explicit import sum_rules

sum_rules.add(p.linear_recurrence_p, lambda op, **params: ((1,),))
