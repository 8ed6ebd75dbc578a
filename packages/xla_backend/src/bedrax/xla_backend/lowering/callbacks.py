"""StableHLO for callbacks: custom calls into the host's Python."""

from bedrax.core import effects
from bedrax.lax.primitives.callbacks import debug_callback_p, io_callback_p, ordered_io_effect, pure_callback_p
from bedrax.xla_backend.tables import lowering_rules


@lowering_rules.rule(pure_callback_p)
def _pure(ctx, *args, callback, result_avals, device, **_):
    return ctx.host_callback(callback, args, result_avals, has_side_effect=False, device=device)


@lowering_rules.rule(io_callback_p)
def _io(ctx, *args, callback, result_avals, ordered, device):
    return ctx.host_callback(callback, args, result_avals, ordered_io_effect if ordered else None, device=device)


@lowering_rules.rule(debug_callback_p)
def _debug(ctx, *args, callback, effect, **_):
    return ctx.host_callback(callback, args, [], effect if effect in effects.ordered_effects else None)
