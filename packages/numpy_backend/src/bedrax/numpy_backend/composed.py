"""NumPy rules of primitives that are composed of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bedrax.core import config
from bedrax.core.avals import ShapedArray
from bedrax.core.context import trace_context
from bedrax.core.exact import exact_items
from bedrax.core.staging import program_of
from bedrax.lax.tables import decompositions
from bedrax.numpy_backend.program_source import evaluate

if TYPE_CHECKING:
    from bedrax.core.tracing import Primitive


def by_program(prim: Primitive, decomposition: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule that evaluates the program of `decomposition`, traced once per type and params.

    The rule keeps at most 256 programs. It drops them all when there are more.
    """
    programs: dict[Any, Any] = {}

    def rule(*arrays, **params):
        types = tuple((x.shape, x.dtype) for x in arrays)
        key = (types, exact_items(params), trace_context())  # 0.0 == -0.0, and 1 == True
        program = programs.get(key)
        if program is None:
            if len(programs) > 256:
                programs.clear()

            def flat(*xs):
                out = decomposition(*xs, **params)
                return out if prim.multiple_results else [out]

            with config.our_code():
                program = programs[key] = program_of(flat, [ShapedArray(*t) for t in types])
        out = evaluate(program, *arrays)
        return out if prim.multiple_results else out[0]

    return rule


def composed(prim: Primitive) -> Callable[..., Any] | None:
    """Return the rule of a primitive that has a decomposition only; None if it has no decomposition."""
    decomposition = decompositions.find(prim)
    return None if decomposition is None else by_program(prim, decomposition)
