"""Batching of elementwise primitives: operands are brought to one mapped axis."""

from bedrax.batching.tables import batch_rules, elementwise, to_axis
from bedrax.core.avals import aval_of
from bedrax.core.tracing import Primitive
from bedrax.lax.primitives import elementwise as p
from bedrax.lax.primitives import shaping

_CHOICE = (p.clamp_p, p.select_n_p)

elementwise(
    *(
        prim
        for name, prim in vars(p).items()
        if isinstance(prim, Primitive) and prim not in _CHOICE and name != "add_jaxvals_p"
    )
)


def _choice_rule(prim, chosen):
    """A rule for operands that have the result's shape (those at `chosen`), and others that have it or rank 0."""

    def rule(axis, args, dims):
        shapes = [aval_of(x).shape for x in args]
        main = chosen(len(args))
        rank = len(shapes[main[0]]) - (dims[main[0]] is not None)
        to = next((dims[i] for i in main if dims[i] is not None), 0)
        args = list(args)
        for i in main:
            args[i] = to_axis(args[i], dims[i], axis.size, to)
        body = aval_of(args[main[0]]).shape
        for i, dim in enumerate(dims):
            if i in main:
                continue
            own_rank = len(shapes[i]) - (dim is not None)
            if own_rank == rank and (rank or dim is not None):
                args[i] = to_axis(args[i], dim, axis.size, to)
            elif dim is not None:  # a mapped scalar
                args[i] = shaping.broadcast_in_dim(args[i], body, (to,))
        return prim.bind(*args), to

    batch_rules.add(prim, rule, "elementwise")


_choice_rule(p.clamp_p, lambda n: (1,))
_choice_rule(p.select_n_p, lambda n: tuple(range(1, n)))
