"""The StableHLO column: `lowering_rules`, and short ways to write its rows.

Nothing here imports jaxlib. A rule is ``rule(ctx, *operands, **params) -> value`` (a list of values
for primitives with multiple results); `ctx` is a `bedrax.xla_backend.lowering.engine.LoweringContext`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bedrax.core.tables import RuleTable, decompositions

lowering_rules = RuleTable("StableHLO", "bedrax.xla_backend.lowering")

# (primitive, platform) -> rule; wins over `lowering_rules`. A family's file fills both.
platform_rules: dict[tuple[Any, str], Callable] = {}

# What a platform is also known as, in rules.
PLATFORM_ALIASES = {"gpu": ("cuda", "rocm")}


def platform_rule(prim, *platforms: str) -> Callable[[Callable], Callable]:
    """Decorator: this rule is for `platforms` only (``"cpu" "cuda" "rocm" "tpu"``, or ``"gpu"`` for both GPUs)."""

    def register(rule):
        for platform in platforms:
            for name in PLATFORM_ALIASES.get(platform, (platform,)):
                if (prim, name) in platform_rules:
                    raise ValueError(f"StableHLO: a rule for '{prim}' on {name} is registered already")
                platform_rules[prim, name] = rule
        return rule

    return register


def find_rule(prim, platform: str) -> Callable:
    """The rule for `prim` on `platform`; NotImplementedError (naming the cell) where there is none."""
    rule = lowering_rules.find(prim)
    if platform_rules:
        special = platform_rules.get((prim, platform))
        if special is not None:
            return special
    if rule is None and prim in decompositions:
        lower_fun(prim, decompositions[prim])
    return rule if rule is not None else lowering_rules[prim]


def unary(*pairs) -> None:
    """Rows ``prim, "stablehlo.op", ...``: one operand, one result, no attributes (params are dropped)."""
    for prim, op in zip(pairs[::2], pairs[1::2], strict=True):
        lowering_rules.add(prim, _unary_rule(op), kind=op)


def _unary_rule(op: str) -> Callable:
    def rule(ctx, x, **params):
        return ctx.emit(op, (x,))

    return rule


def nary(*pairs) -> None:
    """Rows ``prim, "stablehlo.op", ...``: rank-0 operands are broadcast to the result's shape."""
    for prim, op in zip(pairs[::2], pairs[1::2], strict=True):
        lowering_rules.add(prim, _nary_rule(op), kind=op)


def _nary_rule(op: str) -> Callable:
    def rule(ctx, *operands, **params):
        return ctx.emit(op, ctx.broadcast_operands(operands))

    return rule


def lower_fun(prim, fun: Callable) -> None:
    """Row: `fun(*args, **params)`, written with lax functions, says what the primitive is made of."""

    def rule(ctx, *operands, **params):
        return ctx.lower_fun(fun, *operands, **params)

    lowering_rules.add(prim, rule, kind="composed")
