"""Attributes of kernel objects for libraries. The kernel itself does not use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bedrax.core.ir import Jaxpr
from bedrax.core.tracing import Primitive, Trace, set_trace


def _bind_with_trace(prim: Primitive, trace: Trace, args: Sequence[Any], avals: Any, params: dict[str, Any]) -> Any:
    """Apply a primitive under a trace. The types of the operands are those of `args`."""
    with set_trace(trace):
        return prim.bind(*args, **params)


def install() -> None:
    """Give the kernel's classes these attributes."""
    Trace.main = property(lambda self: self)  # type: ignore[attr-defined]  # equinox compares traces by it
    Jaxpr.literals = property(lambda self: self.consts)  # type: ignore[attr-defined]  # older readers of closed jaxprs
    # Interpreters of jaxprs read these before they take the parameter `call_jaxpr` of an equation. Only a `CallPrimitive` of
    # a library has it; no primitive maps.
    Primitive.call_primitive = False  # type: ignore[attr-defined]
    Primitive.bind_with_trace = _bind_with_trace  # type: ignore[attr-defined]  # traces of Quax and Haiku
    Primitive.map_primitive = False  # type: ignore[attr-defined]
