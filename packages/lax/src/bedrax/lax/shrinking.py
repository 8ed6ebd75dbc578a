"""How loops and branches shrink when only some of their results are used.

Rules of `bedrax.core.passes.dce_rules`: ``rule(eqn, used results) -> (used operands, new equation)``.
"""

from __future__ import annotations

from collections.abc import Sequence

from bedrax.core.dead_code import kept
from bedrax.core.ir import Eqn
from bedrax.core.passes import dce_for


def scan_rule(eqn: Eqn, used: Sequence[bool]):
    """A loop: a carry stays if a used result, or a carry that stays, depends on it."""
    params = eqn.params
    jaxpr, consts, carries = params["jaxpr"], params["num_consts"], params["num_carry"]
    carry, ys = tuple(used[:carries]), tuple(used[carries:])
    while True:
        smaller, used_in = dce_for(jaxpr, (*carry, *ys))
        grown = tuple(a or b for a, b in zip(carry, used_in[consts : consts + carries], strict=True))
        if grown == carry:
            break
        carry = grown
    # What is carried stays an argument, used or not.
    needed = [*used_in[:consts], *carry, *used_in[consts + carries :]]
    added = [v for v, u, n in zip(jaxpr.invars, used_in, needed, strict=True) if n and not u]
    if added:
        smaller = smaller.replace(invars=kept(jaxpr.invars, needed))
    params = {**params, "jaxpr": smaller, "num_consts": sum(used_in[:consts]), "num_carry": sum(carry)}
    # A carry that is needed inside only is a result that nobody reads.
    return needed, Eqn(
        eqn.primitive, kept(eqn.invars, needed), kept(eqn.outvars, (*carry, *ys)), params, smaller.effects,
        eqn.source_info,
    )  # fmt: skip


def cond_rule(eqn: Eqn, used: Sequence[bool]):
    """A choice: an operand stays if a branch uses it."""
    branches = eqn.params["branches"]
    found = [dce_for(b, tuple(used)) for b in branches]
    needed = [any(flags) for flags in zip(*(f for _, f in found), strict=True)]
    shrunk = tuple(
        small.replace(invars=kept(b.invars, needed)) for b, (small, _) in zip(branches, found, strict=True)
    )
    return [True, *needed], Eqn(
        eqn.primitive, [eqn.invars[0], *kept(eqn.invars[1:], needed)], kept(eqn.outvars, used),
        {**eqn.params, "branches": shrunk}, frozenset().union(*(b.effects for b in shrunk)), eqn.source_info,
    )  # fmt: skip
