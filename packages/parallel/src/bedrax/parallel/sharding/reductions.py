"""Extremes along axes, of parts whose extreme is the value."""

from bedrax.lax.primitives import reductions as p
from bedrax.parallel.explicit import extremes
from bedrax.parallel.specs import UnreducedKind

extremes.update({p.reduce_max_p: UnreducedKind.max, p.reduce_min_p: UnreducedKind.min})
