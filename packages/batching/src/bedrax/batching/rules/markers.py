"""Batching of markers."""

from bedrax.batching.tables import absent, batch_rules, elementwise
from bedrax.lax.primitives import markers as p

elementwise(p.stage_p, p.hint_p)


batch_rules.add(p.dce_sink_p, lambda axis, args, dims, **params: (p.dce_sink_p.bind(*args, **params), []))


absent(p.create_token_p, p.after_all_p, p.platform_index_p, why="it has no operands that could be mapped")
