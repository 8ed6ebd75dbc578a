"""Placement for backends with one place: values stay as they are."""

from bedrax.lax.primitives.placement import reshard_p
from bedrax.lax.tables import decompositions


@decompositions.rule(reshard_p, kind="identity")
def _reshard(x, *, to, src):
    return x
