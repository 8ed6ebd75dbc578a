"""The batching column: its table, the row kinds, and functions shared by rules.

A rule is ``rule(axis, args, dims, **params) -> (out, out_dim)``, or two lists where the
primitive has several results. ``dims[i]`` is the mapped axis of ``args[i]``, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.columns import Column
from bedrax.core.effects import Effect
from bedrax.core.ir import Jaxpr
from bedrax.core.typing import ArrayLike
from bedrax.lax.axes import broadcast_axis, insert, move_axis
from bedrax.lax.primitives import shaping

if TYPE_CHECKING:
    from bedrax.core.tracing import Primitive


batch_rules: Final = Column(
    "batching",
    "bedrax.batching.rules",
    signature="rule(axis, args, dims, **params) -> (out, out_dim)",
    purpose="vmap, and for shard_map outside of jit",
    interface=(
        "jax.interpreters.batching",
        "batching.primitive_batchers[primitive] = rule",
        "rule(operands, batch axis or None per operand, **params) -> (result, its batch axis)",
    ),
)

# Rules of effects, by class: `rule(program) -> program`. The new program takes one boolean scalar more, before its other
# arguments, and its effects of this class happen only if it is true. Batched control flow computes elements that did not
# take a branch, or whose loop has ended; these rules keep the effects of such elements from happening.
conditional_effects: dict[type[Effect], Callable[[Jaxpr], Jaxpr]] = {}


def made_conditional(program: Jaxpr) -> tuple[Jaxpr, int]:
    """Returns `program` with its effects made conditional where a rule is known, and the number of new arguments."""
    rules = [rule for kind, rule in conditional_effects.items() if any(isinstance(e, kind) for e in program.effects)]
    for rule in rules:
        program = rule(program)
    return program, len(rules)


class AxisData(NamedTuple):
    """The axis that `vmap` maps, as batching rules get it.

    Attributes:
      name: the name (`axis_name`), or None.
      size: the number of elements.
      spmd_name: the mesh axes that the axis is spread over (`spmd_axis_name`), or None.
      split: the split of this axis in types, as of an array with this axis alone; None: not split.
      varying: the manual mesh axes that the axis is spread over, inside a program of blocks: all values vary over them.

    Examples:

      >>> from bedrax.batching import AxisData
      >>> AxisData("batch", 3).size
      3
    """

    name: Any
    size: Any
    spmd_name: Any = None
    split: Any = None
    varying: frozenset[Any] = frozenset()


def to_axis(x: Any, dim: int | None, size: int, position: int) -> Any:
    """`x`, mapped or not, as mapped at `position`."""
    return broadcast_axis(x, size, position) if dim is None else move_axis(x, dim, position)


def to_front(x: ArrayLike, dim: int | None, size: int) -> Array:
    """`x`, mapped or not, as mapped at axis 0."""
    return to_axis(x, dim, size, 0)


def all_to_front(args: list[ArrayLike], dims: list[int | None], size: int) -> list[Any]:
    """Several values as mapped at axis 0."""
    return [to_front(x, d, size) for x, d in zip(args, dims, strict=True)]


def _elementwise_rule(prim):
    def rule(axis, args, dims, **params):
        shapes = [aval_of(x).shape for x in args]
        rank = max(len(s) - (d is not None) for s, d in zip(shapes, dims, strict=True))
        ranked = {d for s, d in zip(shapes, dims, strict=True) if d is not None and len(s) == rank + 1}
        if len(ranked) == 1 and all(
            (d is None and not s) or (d is not None and len(s) == rank + 1) for s, d in zip(shapes, dims, strict=True)
        ):
            return prim.bind(*args, **params), ranked.pop()
        # Some operand is unmapped, mapped at another axis, or a mapped scalar: move all mapped axes to one position.
        to = min(ranked) if ranked else 0
        aligned = []
        for x, shape, d in zip(args, shapes, dims, strict=True):
            if d is None:
                aligned.append(x if not shape else broadcast_axis(x, axis.size, to))
            elif len(shape) == rank + 1:
                aligned.append(move_axis(x, d, to))
            else:  # a mapped scalar among operands of higher rank
                others, e = next((s, e) for s, e in zip(shapes, dims, strict=True) if len(s) - (e is not None) == rank)
                body = [n for i, n in enumerate(others) if i != e]
                aligned.append(shaping.broadcast_in_dim(x, insert(body, to, axis.size), (to,)))
        return prim.bind(*aligned, **params), to

    if not prim.multiple_results:
        return rule

    def rule_of_many(axis, args, dims, **params):
        out, to = rule(axis, args, dims, **params)
        return out, [to] * len(out)

    return rule_of_many


def elementwise(*prims: Primitive) -> None:
    """Rows for primitives that act on each element: operands are brought to one mapped axis."""
    for prim in prims:
        batch_rules.add(prim, _elementwise_rule(prim), "elementwise")


def absent(*prims: Primitive, why: str) -> None:
    """Rows that state why there is no rule."""
    batch_rules.absent(*prims, why=why)
