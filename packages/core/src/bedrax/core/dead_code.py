"""How equations that hold programs shrink when only some of their results are used.

Rules of `bedrax.core.passes.dce_rules`: ``rule(eqn, used results) -> (used operands, new equation)``.
"""

from __future__ import annotations

from collections.abc import Sequence

from bedrax.core.ir import Eqn
from bedrax.core.passes import dce_for


def kept(values: Sequence, flags: Sequence[bool]) -> list:
    return [v for v, f in zip(values, flags, strict=True) if f]


def call_rule(eqn: Eqn, used: Sequence[bool]):
    """An equation that applies one program, its param `jaxpr`."""
    smaller, used_in = dce_for(eqn.params["jaxpr"], tuple(used))
    params = {**eqn.params, "jaxpr": smaller}
    for name, flags in (("donated_invars", used_in), ("in_shardings", used_in), ("out_shardings", used)):
        if params.get(name) is not None:
            params[name] = tuple(kept(params[name], flags))
    return used_in, Eqn(
        eqn.primitive,
        kept(eqn.invars, used_in),
        kept(eqn.outvars, used),
        params,
        smaller.effects,
        eqn.source_info,
    )
