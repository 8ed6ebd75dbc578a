"""Attributes of kernel objects for libraries. The kernel itself does not use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bedrax.core.ir import Jaxpr
from bedrax.core.tables import programs
from bedrax.core.tracing import Primitive, Trace, set_trace


class _AppliesAProgram:
    """Whether a primitive is declared to apply a program. A subclass may set its own attribute."""

    def __get__(self, prim: Primitive | None, owner: type | None = None) -> bool:
        return prim is not None and prim.family == "calls" and programs.states(prim)


def _bind_with_trace(prim: Primitive, trace: Trace, args: Sequence[Any], avals: Any, params: dict[str, Any]) -> Any:
    """Apply a primitive under a trace. The types of the operands are those of `args`."""
    with set_trace(trace):
        return prim.bind(*args, **params)


def install() -> None:
    """Give the kernel's classes these attributes."""
    Trace.main = property(lambda self: self)  # type: ignore[attr-defined]  # equinox compares traces by it
    Jaxpr.literals = property(lambda self: self.consts)  # type: ignore[attr-defined]  # older readers of closed jaxprs
    # Interpreters of jaxprs read this before they descend into an equation's program; no primitive maps like
    # `map_primitive`.
    Primitive.call_primitive = _AppliesAProgram()  # type: ignore[attr-defined]
    Primitive.bind_with_trace = _bind_with_trace  # type: ignore[attr-defined]  # traces of Quax and Haiku
    Primitive.map_primitive = False  # type: ignore[attr-defined]
