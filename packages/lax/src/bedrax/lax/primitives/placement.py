"""Placement: the sharding, memory and layout of values in a program.

There is one operation, `reshard`: the identity, whose result is at a *place*. A place is opaque here: a backend's
sharding, memory or layout. It is hashable and has

- ``place.assignment``: the devices in their order, as a tuple; None if the place has no devices;
- ``place.with_dimension(position, axes)``: the place of a batch of such values; the new dimension is split over the
  mesh axes `axes` (None: the partitioner chooses);
- ``place.sharding_of_type(aval)``: the sharding in the type of a value at this place, or None;
- ``place.partial``: whether values at this place are parts of sums over mesh axes, or sums of parts;
- ``place.dual()``: the place of cotangents, where these two are exchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bedrax import pytree
from bedrax.core import effects, executors, offers
from bedrax.core.avals import AbstractValue, ShapedArray, aval_of
from bedrax.core.caches import remembered
from bedrax.core.jitting import jit
from bedrax.core.tables import device_rules, effect_rules, print_rules
from bedrax.core.tracing import Primitive, Tracer

__all__ = [
    "Memory",
    "anywhere",
    "cotangent_type",
    "free",
    "is_partial",
    "inspect_array_sharding",
    "inspect_sharding_p",
    "is_split",
    "moved",
    "placed",
    "placed_call",
    "placed_result",
    "reshard_p",
    "shard_alike",
    "shard_alike_p",
]


@dataclass(frozen=True)
class Memory:
    """Another memory of the same devices: ``Memory("pinned_host")``."""

    kind: str
    assignment = layout = None
    partial = False

    @property
    def memory_kind(self) -> Any:
        return self.kind

    def with_dimension(self, position: int, axes: str | None) -> Memory:
        return self

    def sharding_of_type(self, aval: ShapedArray) -> Any:
        return aval.split

    def dual(self) -> Memory:
        return self

    def __repr__(self) -> str:
        return f"Memory({self.kind!r})"


class _Anywhere:
    """The place that the partitioner chooses."""

    __slots__ = ()
    assignment = layout = memory_kind = None
    partial = False

    def dual(self) -> _Anywhere:
        return self

    def with_dimension(self, position: int, axes: Sequence[int]) -> _Anywhere:
        return self

    def sharding_of_type(self, aval: AbstractValue) -> None:
        return None

    def __repr__(self) -> str:
        return "anywhere"

    def __reduce__(self) -> tuple[Any, ...]:
        return "anywhere"


anywhere: Final = _Anywhere()

# The identity. params: to (the place of the result), src (that of the operand, to which cotangents go; None: not known)
reshard_p: Final = Primitive("reshard", "placement")


@reshard_p.abstract
def _type_at_place(aval, *, to, src):
    found = to.sharding_of_type(aval)
    return aval if found == aval.split else aval.update(sharding=found)


reshard_p.def_impl(lambda x, *, to, src: executors.get().reshard(x, to))


device_rules.add(reshard_p, lambda params: (params["to"],))
print_rules.add(reshard_p, lambda params: {k: v for k, v in params.items() if v is not None})


def placed(x: Any, where: Any, what: str = "out_sharding") -> Any:
    """`x` at a place that a user names: a device, a sharding, a partition spec...; itself for None.

    Args:
      what: the name of the argument that holds the place, for messages. The axes of an `out_sharding` are explicit.
    """
    if where is None:
        return x
    return moved(x, executors.get().resolve(where, what, aval_of(x), typed=what == "out_sharding"))


def moved(x: Any, to: Any) -> Any:
    """`x` at a place; its cotangent returns to the old place if types hold one."""
    aval = aval_of(x)
    if to.partial or (aval.split is not None and aval.split.partial):
        return offers.offered("moves of partial sums")(x, to)
    typed = aval.split is not None or to.sharding_of_type(aval) is not None
    return reshard_p.bind(x, to=to, src=(aval.split or anywhere) if typed else None)


def cotangent_type(aval: AbstractValue) -> AbstractValue:
    """The type of cotangents of values of a tangent type: partial sums and sums are each other's dual."""
    split = getattr(aval, "split", None)
    return aval if split is None or not split.partial else aval.update(sharding=split.dual())


# `(fun, where, operands)`; set once there are axes over which devices must not exchange values.
before_placing: Callable[..., Any] | None = None


def placed_call(where: Any, fun: Callable[..., Any], *operands: Any) -> Any:
    """``fun(*operands)`` placed at `where`; inside, types hold no split of operands."""
    if where is not None and (is_partial(where) or any(map(is_partial, map(aval_of, operands)))):
        return offers.offered("results with partial sums")(fun, where, operands)
    if before_placing is not None:
        before_placing(fun, where, operands)
    return placed(fun(*map(free, operands)), where)


def placed_result(where: Any, fun: Callable[..., Any], *operands: Any, **params: Any) -> Any:
    """``fun(*operands, **params)`` placed at `where`; then the partitioner chooses how operands are split.

    If their types hold a split, this is one program: types inside it hold none.
    """
    if where is None:
        return fun(*operands, **params)
    if is_partial(where) or any(map(is_partial, map(aval_of, operands))):
        return offers.offered("results with partial sums")(functools.partial(fun, **params), where, operands)
    if not any(map(is_split, operands)):
        return placed(fun(*operands, **params), where)
    if before_placing is not None:
        before_placing(functools.partial(fun, **params), where, operands)
    return _placed_program(fun, where, tuple(params.items()))(*operands)


def placed_as(aval: AbstractValue, fun: Callable[..., Any], *operands: Any, **params: Any) -> Any:
    """``fun(*operands, **params)`` with the split of a type. Values inside may have sizes that this split does not divide."""
    split = getattr(aval, "split", None)
    return placed_result(None if split is None or split.partial else split, fun, *operands, **params)


@remembered(1024)
def _placed_program(fun: Callable, where: Any, params: tuple) -> Callable:
    return jit(lambda *operands: placed(fun(*map(free, operands), **dict(params)), where))


def is_partial(where: Any) -> bool:
    """Whether a place that a user names, or a type, has axes of partial sums or of sums."""
    spec = getattr(getattr(where, "split", where), "spec", where)
    return bool(getattr(spec, "unreduced", None) or getattr(spec, "reduced", None))


def is_split(x: Any) -> bool:
    """Whether the type of `x` holds a split."""
    return getattr(getattr(x, "aval", None), "split", None) is not None  # types of values on the host hold none


def free(x: Any) -> Any:
    """`x`, with a type that holds no split; partial sums are summed."""
    split = getattr(aval_of(x), "split", None)
    if split is not None and split.spec.unreduced:
        return free(moved(x, split.update(spec=split.spec.update(unreduced=set(), reduced=set()))))
    return x if split is None else reshard_p.bind(x, to=anywhere, src=split)


# ---- queries of places, and values at equal places

shard_alike_p: Final = Primitive("shard_alike", "placement", multiple_results=True)
shard_alike_p.abstract(lambda x, y: [x, y])


def shard_alike(x: Any, y: Any) -> tuple[Any, ...]:
    """Return two pytrees of arrays in which corresponding leaves have equal shardings, chosen by the compiler.

    Args:
      x, y: pytrees of arrays, of one structure. Corresponding leaves have one shape.

    Returns:
      The two pytrees, with the same values.

    Raises:
      ValueError: their structures, or the shapes of two leaves, differ.

    Examples:

      >>> from jax.experimental.shard_alike import shard_alike
      >>> @jax.jit
      ... def f(x):
      ...     x, y = shard_alike(x, jnp.zeros_like(x))
      ...     return x + y
      ...
      >>> f(jnp.arange(3))
      Array([0, 1, 2], dtype=int32)
    """
    xs, tree = pytree.tree_flatten(x)
    ys, other = pytree.tree_flatten(y)
    if tree != other:
        raise ValueError(f"shard_alike: x and y are pytrees of one structure, got {tree} and {other}")
    pairs = []
    for a, b in zip(xs, ys, strict=True):
        if aval_of(a).shape != aval_of(b).shape:
            raise ValueError(f"shard_alike: leaves have one shape, got {aval_of(a).shape} and {aval_of(b).shape}")
        pairs.append(shard_alike_p.bind(a, b))
    return tuple(pytree.tree_unflatten(tree, [pair[i] for pair in pairs]) for i in range(2))


# params: callback (gets the sharding, when the program is compiled)
inspect_sharding_p: Final = Primitive("inspect_sharding", "placement", multiple_results=True)
inspect_sharding_p.abstract(lambda x, *, callback: [])
effect_rules.add(inspect_sharding_p, lambda x, *, callback: {effects.kept})


def inspect_array_sharding(value: Any, *, callback: Callable[..., Any]) -> None:
    """Call ``callback(sharding)`` with the sharding of the leaves of `value`; inside `jit`, at compilation.

    Args:
      value: a pytree of arrays.
      callback: a function of a sharding.

    Examples:

      >>> jax.debug.inspect_array_sharding(jnp.ones(3), callback=lambda where: print(len(where.device_set)))
      1
    """
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, Tracer):
            inspect_sharding_p.bind(leaf, callback=callback)
        else:
            callback(getattr(leaf, "sharding", None))
