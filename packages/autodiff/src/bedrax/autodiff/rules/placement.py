"""Differentiation of placement: tangents are placed like values, cotangents are placed back."""

from bedrax.autodiff.tables import Zero, jvp_rules, transpose_rules
from bedrax.lax.primitives.placement import inspect_sharding_p, reshard_p, shard_alike_p


@jvp_rules.rule(reshard_p, kind="linear")
def _jvp(primals, tangents, *, to, src):
    (x,), (t,) = primals, tangents
    if src is None:
        src = getattr(x, "sharding", None)  # the placement of the returned cotangent
    ans = reshard_p.bind(x, to=to, src=src)
    return ans, Zero(t.aval) if type(t) is Zero else reshard_p.bind(t, to=to, src=src)


@transpose_rules.rule(reshard_p, kind="linear")
def _transpose(ct, x, *, to, src):
    return [ct if src is None else reshard_p.bind(ct, to=src.dual(), src=to.dual())]


@jvp_rules.rule(shard_alike_p, kind="tangents pass by")
def _alike(primals, tangents):
    return shard_alike_p.bind(*primals), list(tangents)


@jvp_rules.rule(inspect_sharding_p, kind="zero")
def _inspect(primals, tangents, *, callback):
    return inspect_sharding_p.bind(*primals, callback=callback), []


transpose_rules.absent(shard_alike_p, inspect_sharding_p, why="tangents pass by it")
