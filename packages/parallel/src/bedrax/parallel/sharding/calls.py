"""Partial sums of calls that change no value."""

from bedrax.lax.primitives import calls as p
from bedrax.parallel.explicit import EACH, moving, sum_rules

sum_rules.add(p.optimization_barrier_p, lambda op: EACH)
moving.update((p.optimization_barrier_p, p.name_p))
