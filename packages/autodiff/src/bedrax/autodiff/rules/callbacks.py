"""Differentiation of callbacks: debugging callbacks drop tangents, the others raise if they get one."""

from bedrax.autodiff.tables import Zero, jvp_rules, transpose_rules
from bedrax.core.public import public
from bedrax.lax.primitives.callbacks import debug_callback_p, io_callback_p, pure_callback_p


def _refuses(prim, name):
    @jvp_rules.rule(prim, kind="error")
    def _(primals, tangents, **params):
        if all(type(t) is Zero for t in tangents):
            out = prim.bind(*primals, **params)
            return out, [Zero.of(x) for x in out]
        raise ValueError(
            public(f"{name}: a callback has no derivative; use jax.custom_jvp or custom_vjp where it is called")
        )

    transpose_rules.absent(prim, why="a callback has no derivative, so it is never part of a linear program")


_refuses(pure_callback_p, "Pure")
_refuses(io_callback_p, "IO")


@jvp_rules.rule(debug_callback_p, kind="zero")
def _debug(primals, tangents, **params):
    return debug_callback_p.bind(*primals, **params), []


transpose_rules.add(debug_callback_p, lambda cts, *args, **params: [None] * len(args), kind="zero")
