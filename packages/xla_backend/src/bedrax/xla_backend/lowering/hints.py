"""Hints for the compiler: attributes of operations that it keeps unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bedrax.xla_backend.lowering import types
from bedrax.xla_backend.lowering.types import ir

_NAME = "mhlo.frontend_attributes"


def mark(op: Any, pairs: Sequence[tuple[str, str]]) -> None:
    """Add pairs to the frontend attributes of an operation. A key that is present keeps its value."""
    if not pairs:  # an empty attribute would keep XLA from inferring shapes of some operations
        return
    have = {}
    if _NAME in op.attributes:
        have = {named.name: named.attr for named in ir.DictAttr(op.attributes[_NAME])}
    new = {k: types.string(v) for k, v in pairs}
    op.attributes[_NAME] = ir.DictAttr.get({**new, **have}, types.context)


def mark_all(results: Any, operands: Sequence[Any], pairs: Sequence[tuple[str, str]]) -> None:
    """Mark the operations of a rule: from its results back to its operands."""
    if not pairs:
        return
    waiting = list(results) if isinstance(results, list | tuple) else [results]
    seen = {v.owner for v in operands if isinstance(v.owner, ir.Operation | ir.OpView)}
    while waiting:
        op = getattr(waiting.pop(), "owner", None)
        if not isinstance(op, ir.Operation | ir.OpView) or op in seen or op.name == "stablehlo.constant":
            continue
        seen.add(op)
        mark(op, pairs)
        waiting += op.operands
