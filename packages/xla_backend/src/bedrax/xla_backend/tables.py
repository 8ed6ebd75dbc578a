"""The StableHLO column: `lowering_rules`, and helpers for its rows.

Nothing here imports jaxlib. A rule is ``rule(ctx, *operands, **params) -> value`` (a list of values
for primitives with multiple results); `ctx` is a `bedrax.xla_backend.lowering.program.LoweringContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from bedrax.core.columns import Column
from bedrax.lax.tables import decompositions
from bedrax.xla_backend import platforms

if TYPE_CHECKING:
    from bedrax.core.tracing import Primitive


def _composed(prim) -> Callable | None:
    decomposition = decompositions.find(prim)
    return None if decomposition is None else _lowered_function(decomposition)


def _lowered_function(fun: Callable) -> Callable:
    def rule(ctx, *operands, **params):
        return ctx.lower_fun(fun, *operands, **params)

    return rule


SIGNATURE = "rule(ctx, *operands, **params) -> value, or list"
lowering_rules: Final = Column(
    "StableHLO",
    "bedrax.xla_backend.lowering",
    signature=SIGNATURE,
    purpose="compilation (jit, and eager calls on arrays)",
    interface=(
        "jax.interpreters.mlir",
        "mlir.register_lowering(primitive, rule)",
        "rule = mlir.lower_fun(function of arrays, multiple_results=False)",
    ),
    otherwise=_composed,
)

result_places: Final[dict[Primitive, Callable[[dict[str, Any]], Sequence[Any]]]] = {}
"""Primitive whose equations say where results are -> function of its parameters that returns the place of each result: a
sharding, a format or a `Memory` (None: anywhere). XLA checks that the results of a program are in the memories that its
operations name."""

# Rules of one platform, which override `lowering_rules`. A family's file fills both. Plugins add platforms later.
_on_platform = {name: Column(f"StableHLO on {name}", signature=SIGNATURE) for name in platforms.PLATFORMS}


def on_platform(name: str) -> Column:
    """The column of the rules of one platform."""
    found = _on_platform.get(name)
    if found is None:  # a column without rules is false
        found = _on_platform.setdefault(name, Column(f"StableHLO on {name}", signature=SIGNATURE))
    return found


def platform_rule(prim: Primitive, *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: a rule for some platforms only (``"cpu" "cuda" "rocm" "tpu"``, or ``"gpu"`` for both GPUs)."""

    def register(rule):
        for platform in names:
            for name in platforms.members(platform):
                on_platform(name).add(prim, rule)
        return rule

    return register


def find_rule(prim: Primitive, platform: str) -> Callable[..., Any]:
    """The rule for `prim` on `platform`. Raises NotImplementedError, naming both, if there is none."""
    rule = dict.get(lowering_rules, prim) or lowering_rules.find(prim)  # loads the family's file, which fills both
    return dict.get(on_platform(platform), prim) or rule or lowering_rules[prim]


def unary(*pairs: Primitive | str) -> None:
    """Rows ``prim, "stablehlo.op", ...``: one operand, one result, no attributes (params are dropped)."""
    for prim, op in zip(pairs[::2], pairs[1::2], strict=True):
        lowering_rules.add(prim, _unary_rule(op), kind=op)


def _unary_rule(op: str) -> Callable:
    def rule(ctx, x, **params):
        return ctx.emit(op, (x,))

    return rule


def nary(*pairs: Primitive | str) -> None:
    """Rows ``prim, "stablehlo.op", ...``: rank-0 operands are broadcast to the result's shape."""
    for prim, op in zip(pairs[::2], pairs[1::2], strict=True):
        lowering_rules.add(prim, _nary_rule(op), kind=op)


def _nary_rule(op: str) -> Callable:
    def rule(ctx, *operands, **params):
        return ctx.emit(op, ctx.spread_operands(operands))

    return rule


def lower_fun(prim: Primitive, fun: Callable[..., Any]) -> None:
    """Row: the primitive is lowered as `fun(*args, **params)`, which is written with lax functions."""
    lowering_rules.add(prim, _lowered_function(fun), kind="composed")
