"""Differentiation of markers."""

from bedrax.autodiff.tables import absent, jvp, jvp_rules, linear, transpose_rules, zero
from bedrax.lax.primitives import markers as p

linear(p.stage_p, lambda ct, x: [ct])
jvp(p.hint_p, lambda t, ans, x, *, pairs: t)  # hints concern the value


@jvp_rules.rule(p.dce_sink_p, kind="zero")
def _sink(primals, tangents, **params):
    return p.dce_sink_p.bind(*primals, **params), []


transpose_rules.add(p.dce_sink_p, lambda cts, *args, **params: [None] * len(args), kind="zero")


zero(p.platform_index_p)
absent(p.create_token_p, p.after_all_p, why="tokens have no tangents")
