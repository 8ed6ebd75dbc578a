"""Differentiation of placement: tangents go where values go, cotangents come back."""

from bedrax.autodiff.tables import Zero, jvp_rules, transpose_rules
from bedrax.lax.primitives.placement import reshard_p


@jvp_rules.rule(reshard_p, kind="linear")
def _jvp(primals, tangents, *, to, src):
    (x,), (t,) = primals, tangents
    if src is None:
        src = getattr(x, "sharding", None)  # where the cotangent goes back to
    ans = reshard_p.bind(x, to=to, src=src)
    return ans, Zero(t.aval) if type(t) is Zero else reshard_p.bind(t, to=to, src=src)


@transpose_rules.rule(reshard_p, kind="linear")
def _transpose(ct, x, *, to, src):
    return [ct if src is None else reshard_p.bind(ct, to=src, src=to)]
