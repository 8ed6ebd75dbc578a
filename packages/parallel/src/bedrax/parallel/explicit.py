"""Explicit axes: types with the split of arrays, and the functions that change it.

An array over a mesh with `Explicit` axes has a type with a sharding, ``float32[8@x,4]``, and so has every value that is
computed from it: the column `sharding` has the split of the results of each primitive. If operands have different
splits, or the split of the result is ambiguous, that is an error during tracing, and the message has the remedy.
None is a type without split axes.

A value can be a sum of parts over an axis, one part on each device: ``float32[8]{U:x}``. An operation that is linear in
it has such a result, and its parts are computed from parts, without an exchange: the column `partial sums` has the
operands in which a primitive is linear. Other operations refuse such operands. ``float32[8]{R:x}`` is a value that is
complete over `x`, and whose cotangent is a sum of parts.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from bedrax import pytree
from bedrax.core import executors, offers, passes, staging, tables, tracing
from bedrax.core.avals import AbstractValue, aval_of
from bedrax.core.columns import Column
from bedrax.core.context import Variable
from bedrax.core.ir import Jaxpr
from bedrax.core.public import public
from bedrax.core.tracing import Primitive, pvary_p
from bedrax.lax.primitives import collectives, custom_rules, placement
from bedrax.lax.primitives.placement import free, moved, reshard_p
from bedrax.parallel import meshes
from bedrax.parallel.meshes import AxisType
from bedrax.parallel.specs import PartitionSpec, UnreducedKind, axes_of

__all__ = [
    "ForbiddenCollectiveError",
    "ShardingTypeError",
    "auto_axes",
    "explicit_axes",
    "no_collectives",
    "reshard",
    "sharding_rules",
    "sum_rules",
]


class ShardingTypeError(ValueError):
    """Values have splits, or partial sums, that an operation cannot combine.

    Examples:

      >>> mesh = jax.make_mesh((1,), ("i",))
      >>> x = jax.device_put(jnp.ones(2), jax.NamedSharding(mesh, jax.P(unreduced={"i"})))
      >>> try:
      ...     jnp.sin(x)
      ... except jax.errors.ShardingTypeError as error:
      ...     print(str(error)[:37])
      ...
      sin of f32[2]{U:i}: an operand is par
    """


class ForbiddenCollectiveError(Exception):
    """An operation needs an exchange over a mesh axis that `no_collectives` excludes."""


class Operation:
    """The argument of a sharding rule.

    Attributes:
      prim, name: the primitive, and its name.
      types, outs: types of operands and results.
      specs: per operand, an entry of a partition spec for each dimension.
      sizes: the sizes of the mesh axes.
      unreduced, kinds: per operand, the axes over which it is partial sums, and their kind.
      reduced: per operand, the axes over which it is a sum.
    """

    def __init__(self, prim: Primitive, types: Any, outs: Any, sharding: Any) -> None:
        self.prim: Primitive = prim
        self.name: str = prim.name
        self.types = types
        self.outs = outs
        self.sharding = sharding
        self.sizes: dict[Any, Any] = dict(sharding.mesh.shape_tuple)
        self.specs: list[tuple[Any, ...]] = [entries(t) for t in types]
        splits = [getattr(t, "split", None) for t in types]
        self.unreduced: list[frozenset[Any]] = [_NO_AXES if s is None else s.spec.unreduced for s in splits]
        self.reduced: list[frozenset[Any]] = [_NO_AXES if s is None else s.spec.reduced for s in splits]
        self.kinds: list[UnreducedKind | None] = [None if s is None else s.spec.unreduced_kind for s in splits]

    def error(self, what: str, advice: str = "") -> ShardingTypeError:
        """The error of this operation."""
        operands = ", ".join(t.short() for t in self.types)
        advice = advice or "Move an operand first, with jax.sharding.reshard(x, P(...))"
        return ShardingTypeError(
            public(
                f"{self.name} of {operands}: {what}. {advice}, or let the compiler choose: jax.sharding.auto_axes(f,"
                " out_sharding=P(...))."
            )
        )

    def parts(self, entry: Any) -> int:
        """The number of parts of a dimension with this entry."""
        return math.prod(self.sizes[a] for a in axes_of(entry))

    def joined(self, specs: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        """The common split of several values of one shape: a dimension that one of them splits is split."""
        found = []
        for i, given in enumerate(zip(*specs, strict=True)):
            split = list(dict.fromkeys(e for e in given if e is not None))
            if len(split) > 1:
                raise self.error(f"axis {i} is split over {split[0]!r} in one operand and over {split[1]!r} in another")
            found.append(split[0] if split else None)
        return tuple(found)

    def unsplit(self, i: int, dims: Sequence[int], why: str) -> None:
        """Raise if operand `i` is split along one of `dims`."""
        for d in dims:
            if self.specs[i][d] is not None:
                raise self.error(
                    f"operand {i} is split over {self.specs[i][d]!r} along axis {d}, {why}",
                    f"Gather it first, with jax.sharding.reshard(x, P(...)) and None for axis {d}",
                )

    def kept(self, entry: Any, size: Any, d: int) -> Any:
        """The entry for a dimension with a new size: the parts must still be equal."""
        if entry is not None and (not isinstance(size, int) or size % self.parts(entry)):
            raise self.error(
                f"axis {d} of the result has size {size}, no multiple of the {self.parts(entry)} parts over {entry!r}"
            )
        return entry


_NO_AXES: frozenset[Any] = frozenset()


def entries(aval: AbstractValue) -> tuple[Any, ...]:
    """For each dimension of a type, the mesh axes that split it, or None."""
    shape = getattr(aval, "shape", ())
    sharding = getattr(aval, "split", None)
    spec = () if sharding is None else tuple(sharding.spec)
    return (*spec, *(None,) * (len(shape) - len(spec)))


# ---- axes without collectives

_forbidden = Variable("no_collectives_over", frozenset())  # the mesh axes of `no_collectives`


def no_collectives(axis_names: Any) -> contextlib.AbstractContextManager[Any]:
    """Context manager and decorator: an operation that needs a collective over some mesh axes is an error.

    The check uses types, so it applies to explicit axes, and to collectives by name inside `shard_map`. An inner use
    replaces an outer one. Operations inside `jax.sharding.auto_axes` are not checked.

    Args:
      axis_names: a set of names of mesh axes.

    Raises:
      TypeError: `axis_names` is not a set.
      ForbiddenCollectiveError: inside, during tracing: an operation sums over such an axis, gathers over it, or moves
        it to another dimension.

    Examples:

      >>> with jax.sharding.no_collectives({"i"}):
      ...     jnp.ones(2) + 1
      Array([2., 2.], dtype=float32)
    """
    if not isinstance(axis_names, set | frozenset):
        raise TypeError(
            f"no_collectives takes a set of names of mesh axes, got {axis_names!r} of type {type(axis_names)}"
        )
    placement.before_placing = _check_placed
    return _forbidden(frozenset(axis_names))


def _forbid(name: str, axis: Any, what: str) -> ForbiddenCollectiveError:
    return ForbiddenCollectiveError(
        f"no_collectives forbids collectives over the mesh axis {axis!r}, but {name} {what}. Compute it outside of"
        " no_collectives, or split the operand in another way before"
    )


def _check_kept(op: Operation, outs: Sequence[AbstractValue]) -> None:
    """Raise if a forbidden axis splits an operand and no result: its parts must be gathered."""
    found = [entries(t) for t in outs]
    for axis in sorted(_forbidden.value, key=str):
        before = _dimensions(op.specs, axis)
        after = _dimensions(found, axis)
        if before and not after:
            raise _forbid(op.name, axis, "has an operand that is split over it, and no result that is")
        if op.prim is reshard_p and after and before and before != after:
            raise _forbid(op.name, axis, "moves it to another dimension")


def _dimensions(specs: Sequence[tuple], axis: Any) -> set[int]:
    return {d for spec in specs for d, entry in enumerate(spec) if axis in axes_of(entry)}


def _check_placed(fun: Callable, where: Any, operands: Sequence[Any]) -> None:
    """Raise if an operation cannot place its result without a collective over a forbidden axis.

    Each forbidden axis of each operand is propagated separately through the operation. It must arrive at the dimension
    that the result is split along it.
    """
    if not _forbidden.value:
        return
    types = [aval_of(x) for x in operands]
    for i, aval in enumerate(types):
        for axis in _forbidden.value.intersection(a for e in entries(aval) for a in axes_of(e)):
            spec = PartitionSpec(*[axis if axis in axes_of(e) else None for e in entries(aval)])
            alone = [
                t.update(sharding=aval.split.update(spec=spec) if j == i else None) if t.is_array else t
                for j, t in enumerate(types)
            ]
            try:
                out = staging.program_of(lambda *xs: [fun(*xs)], alone).out_avals[0]
            except ShardingTypeError as error:
                raise _forbid("an operation", axis, f"places its result by {where}: {error}") from None
            wanted = getattr(executors.get().resolve(where, "out_sharding", out), "spec", ())
            if _dimensions([entries(out)], axis) != _dimensions([tuple(wanted)], axis):
                raise _forbid("an operation", axis, f"places its result by {where}, which moves or gathers it")


def check_collectives(program: Jaxpr, axes: frozenset[Any] | None = None) -> None:
    """Raise if a program of `shard_map` has a collective over a forbidden axis."""
    axes = _forbidden.value if axes is None else axes
    for eqn in passes.speaking(program, tables.named_axes, tables.programs) if axes else ():
        prim = eqn.primitive
        if prim.family == "collectives" and prim not in (collectives.axis_index_p, collectives.cast_p, pvary_p):
            for axis in axes.intersection(tables.named_axes[prim](eqn.params)):
                raise _forbid(prim.name, axis, "is a collective over it")
        for use in tables.programs[prim](eqn.params):
            check_collectives(use.program, axes - {name for name, _ in use.axes})


def check_blocks(aval: AbstractValue, spec: PartitionSpec) -> None:
    """Raise if a forbidden axis splits an argument of `shard_map`, and its spec splits other dimensions by this axis."""
    for axis in _forbidden.value:
        before = _dimensions([entries(aval)], axis)
        if before and before != _dimensions([tuple(spec)], axis):
            raise _forbid("shard_map", axis, f"has an argument of type {aval.str_short()} and cuts it by {spec}")


# ---- rules of whole families; `bedrax.parallel.sharding.<family>` has those of others


def elementwise(op: Operation, **params: Any) -> Any:
    """Operands of the result's shape, and scalars."""
    rank = len(op.outs[0].shape)
    found = op.joined([s for s, t in zip(op.specs, op.types, strict=True) if len(t.shape) == rank])
    return [found] * len(op.outs)


def same(op: Operation, **params: Any) -> Any:
    """Each result has the split of the operand at its position."""
    return [op.specs[i] if i < len(op.specs) else (None,) * len(o.shape) for i, o in enumerate(op.outs)]


def reduction(op: Operation, *, axes: Sequence[int] | None = None, dimensions: Any = None, **params: Any) -> Any:
    gone = dimensions if axes is None else axes
    n = len(op.outs)
    joined = op.joined(op.specs[: max(n, 1)])
    return [tuple([e for d, e in enumerate(joined) if d not in gone])] * n


def along_axis(op: Operation, *, axis: int | None = None, dimension: Any = None, **params: Any) -> Any:
    d = dimension if axis is None else axis
    for i in range(len(op.specs)):
        op.unsplit(i, (d,), "along which it works")
    return [op.joined(op.specs)] * len(op.outs)


def matrices(op: Operation, ranks: Sequence[int] = (), **params: Any) -> Any:
    """The last two axes are matrices; the axes before are a batch. `ranks`: those of operands that are not all matrices."""
    batches = []
    for i, rank in enumerate(ranks or (2,) * len(op.types)):
        batch = len(op.types[i].shape) - rank
        op.unsplit(i, range(max(batch, 0), batch + rank), "which is one of the matrix")
        batches.append(op.specs[i][: max(batch, 0)])
    longest = max(map(len, batches))
    found = op.joined([b for b in batches if len(b) == longest])
    return [(*found, *(None,) * (len(o.shape) - longest)) for o in op.outs]


def of_each(op: Operation, **params: Any) -> Any:
    """An operation on each element of the leading axes, which all operands with axes have."""
    ranked = [i for i, t in enumerate(op.types) if t.shape]
    count = min([len(t.shape) for t in (*op.outs, *(op.types[i] for i in ranked))], default=0)
    for i in ranked:
        op.unsplit(i, range(count, len(op.types[i].shape)), "which is part of an element")
    found = op.joined([op.specs[i][:count] for i in ranked]) if ranked else ()
    return [(*found, *(None,) * (len(o.shape) - len(found))) for o in op.outs]


def resized(op: Operation, **params: Any) -> Any:
    """Axes with another size stay split if the new size permits it; devices exchange what others need."""
    (out,) = op.outs
    return [tuple([op.kept(e, n, d) for d, (e, n) in enumerate(zip(op.specs[0], out.shape, strict=True))])]


def nowhere(op: Operation, **params: Any) -> Any:
    """Results that are complete on each device."""
    return [(None,) * len(getattr(o, "shape", ())) for o in op.outs]


_FAMILIES: dict[str, Callable[..., Any]] = {
    "elementwise": elementwise,
    "conversions": elementwise,
    "special": elementwise,
    "reductions": reduction,
    "cumulative": along_axis,
    "linalg": matrices,
    "fft": resized,
    "keys": of_each,
    "callbacks": nowhere,
    "markers": same,
    "random_bits": elementwise,
    "placement": same,
    "calls": same,
    "collectives": same,
}


def _of_family(prim) -> Callable | None:
    return None if prim.family == "calls" and tables.programs.states(prim) else _FAMILIES.get(prim.family)


# `rule(op, **params)`: per result an entry for each dimension, or None: its type has the split already.
sharding_rules: Final = Column(
    "sharding",
    "bedrax.parallel.sharding",
    signature="rule(op, **params) -> [entries of each result]",
    otherwise=_of_family,
)


# ---- partial sums

EACH: Final = "each"  # result i has the partial sums of operand i

_BY_DERIVATIVE: dict[str, tuple[tuple[int, ...], ...] | None] = {"linear": None, "bilinear": ((0,), (1,))}


def _by_derivative(prim: Primitive) -> Callable | None:
    """The rule of a primitive that is linear in all operands together, or in each of two, according to its derivative."""
    from bedrax.autodiff.tables import jvp_rules  # not at the top: the first operation of a process loads this module

    kind = jvp_rules.kind(prim)
    if kind not in _BY_DERIVATIVE:
        return None
    groups = _BY_DERIVATIVE[kind]
    return lambda op, **params: groups or (tuple(range(len(op.types))),)


# `rule(op, **params)`: groups of positions of operands: the operation is linear in the operands of a group together.
sum_rules: Final = Column(
    "partial sums",
    "bedrax.parallel.sharding",
    signature="rule(op, **params) -> groups of operands in which the operation is linear",
    otherwise=_by_derivative,
    otherwise_kind="by derivative",
)

# The files of the families, which `sum_rules` imports, fill these.

# Primitives that select or move elements: they commute with the maximum and the minimum of parts.
moving: set[Primitive] = set()

# Primitives that commute with one of these two.
extremes: dict[Primitive, UnreducedKind] = {}

# In a sum with partial sums, a whole operand is probably a mistake. In other operations (a written element, padding), it
# is the part of the first device.
additions: set[Primitive] = set()


def _axes_text(axes: Any) -> str:
    return ", ".join(map(repr, sorted(axes, key=str)))


def _holders(op: Operation, params: dict[str, Any]) -> tuple[int, ...] | str:
    """The operands that are linear together, and hold the partial sums of an operation; or `EACH`."""
    mine = [i for i, axes in enumerate(op.unreduced) if axes]
    over = frozenset().union(*op.unreduced)
    kinds = {op.kinds[i] for i in mine}
    sum_first = "Sum first, with jax.sharding.reshard(x, P(...)) without unreduced="
    if len(kinds) > 1:
        raise op.error(
            f"the partial sums in the operands are of different kinds, {_axes_text(k.name for k in kinds)}", sum_first
        )
    rule = sum_rules.find(op.prim)
    (kind,) = kinds
    same = extremes.get(op.prim) is kind
    if not same and (rule is None or (kind is not UnreducedKind.sum and op.prim not in moving)):
        raise op.error(
            f"an operand is partial ({kind.name}) over {_axes_text(over)}, and {op.name} of parts are not parts of its"
            " result",
            sum_first,
        )
    groups: Any = (tuple(range(len(op.types))),) if same else rule(op, **params)
    if groups == EACH:
        return EACH
    group = next((g for g in groups if set(mine) <= set(g)), None)
    if group is None:
        held = [i for g in groups for i in g]
        why = (
            f"operands {mine} are partial sums, and it is linear in each alone, not in several together"
            if set(mine) <= set(held)
            else f"it is not linear in operand {next(i for i in mine if i not in held)}, which is partial sums over"
            f" {_axes_text(over)}"
        )
        raise op.error(why, sum_first)
    for i in group:
        if op.unreduced[i] != over and (op.unreduced[i] or op.prim in additions):
            raise op.error(
                f"operand {i} is not partial sums over {_axes_text(over - op.unreduced[i])}, and another operand is",
                f"{sum_first}, or give each of them the same unreduced axes, with reshard(x, P(..., unreduced={{...}}))",
            )
    return group


def whole_operands(prim: Primitive, types: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> Sequence[int]:
    """The operands that are given as a whole, and that are parts together with others."""
    op = Operation(prim, types, outs, next(t.split for t in types if getattr(t, "split", None) is not None))
    group = _holders(op, params)
    if group == EACH or prim in additions or UnreducedKind.sum not in op.kinds:
        return ()  # the maximum and the minimum of equal values are these
    return [i for i in group if not op.unreduced[i]]


def operands_in_parts(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
    """The operands of an operation inside `shard_map`; a whole operand of a sum of parts becomes one of the parts."""
    over = frozenset().union(*map(_manual_sums, args))
    if not over or prim in with_types or prim.family == "collectives" or tables.programs[prim](params):
        return args
    types = [aval_of(x) for x in args]
    outs = tables.shape_rules[prim](*types, **params)
    whole = whole_operands(prim, types, list(outs) if prim.multiple_results else [outs], params)
    in_parts = offers.offered("operands in parts")
    mesh = next(t.split.mesh for t in types if getattr(t, "split", None) is not None)
    return [in_parts(x, over, mesh) if i in whole else x for i, x in enumerate(args)] if whole else args


def _manual_sums(x: Any) -> frozenset[Any]:
    split = getattr(getattr(x, "aval", None), "split", None)
    return _NO_AXES if split is None else split.spec.unreduced.intersection(split.mesh.manual_axes)


tracing.operands_in_parts = operands_in_parts


def _sums(op: Operation, params: dict[str, Any]) -> list[tuple[Any, Any, Any]]:
    """Per result, the axes over which it is partial sums and over which it is a sum, and the kind.

    An operand without axes may meet one that is a sum over some: the result is one, too. Only its own cotangent is summed.

    Raises:
      ShardingTypeError: the operation would have to exchange data.
    """
    over = frozenset().union(*op.unreduced)
    reduced = frozenset().union(*op.reduced)
    if not over and not reduced:
        return [_NOTHING] * len(op.outs)
    splitting = [frozenset(a for e in spec for a in axes_of(e)) for spec in op.specs]
    if over and _holders(op, params) == EACH:
        return [(op.unreduced[i], op.reduced[i], op.kinds[i]) for i in range(len(op.outs))]
    for i, own in enumerate(splitting):
        if over & own:
            raise op.error(f"operand {i} is split over {_axes_text(over & own)}, and another is partial sums over it")
    varying = frozenset().union(*(getattr(t, "vma", _NO_AXES) for t in op.types))
    left = reduced.difference(over, varying, *splitting)
    kind = next((k for k in op.kinds if k is not None), None)
    return [(over, left, kind)] * len(op.outs)


_NOTHING = (_NO_AXES, _NO_AXES, None)


# ---- the types of results


def typed(prim: Primitive, types: Sequence[AbstractValue], params: dict[str, Any], out: Any) -> Any:
    """The types of results with their shardings; called by `Primitive.result_types` if an operand has a sharding."""
    rule = sharding_rules.find(prim)
    if prim is reshard_p and _forbidden.value and params["to"] is not placement.anywhere:
        _check_kept(Operation(prim, types, [out], types[0].split), [out])
    if prim in with_types or (rule is None and tables.programs[prim](params)):
        return out  # the types of the inner programs have it
    shardings = [t.split for t in types if getattr(t, "split", None) is not None]
    outs = list(out) if prim.multiple_results else [out]
    op = Operation(prim, types, outs, shardings[0])
    for s in shardings:
        if s.mesh != op.sharding.mesh:
            raise op.error(f"operands are on different meshes, {op.sharding.mesh} and {s.mesh}")
    if not any(e is not None for spec in op.specs for e in spec):
        rule = nowhere  # partial sums or sums, whose dimensions are not split
    if rule is None:
        raise op.error(
            f"there is no rule for the split of the results of '{prim}'",
            "Gather its operands with jax.sharding.reshard(x, P())",
        )
    found = rule(op, **params)
    placed = [_with(op, a, spec, sums) for a, spec, sums in zip(outs, found, _sums(op, params), strict=True)]
    if _forbidden.value:
        _check_kept(op, placed)
    return placed if prim.multiple_results else placed[0]


# Primitives whose shape rules return types with splits, and check those of operands.
with_types: set[Primitive] = {reshard_p, collectives.cast_p, custom_rules.custom_lin_p}


def _with(op: Operation, aval, spec, sums):
    if spec is None or not getattr(aval, "is_array", False):
        return aval
    used = [a for e in spec for a in axes_of(e)]
    for a in used:
        if used.count(a) > 1:
            raise op.error(f"the result would be split over {a!r} along two axes, as {spec}")
    unreduced, reduced, kind = sums
    if not used and not unreduced and not reduced:
        return aval if aval.split is None else aval.update(sharding=None)
    full = PartitionSpec(*spec, unreduced=unreduced, reduced=reduced, unreduced_kind=kind)
    return aval.update(sharding=type(op.sharding)(op.sharding.mesh, full))


# ---- changes of the kind of axes


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Change the split of the leaves of `xs`; over explicit axes, their types have the new split.

    Args:
      xs: a pytree of arrays.
      out_shardings: a sharding or a `PartitionSpec` of the current mesh, or a pytree prefix of `xs` with them.

    Raises:
      ValueError: a spec without a current mesh, or one that does not divide a shape; or it names an axis that is not
        explicit.

    Examples:

      >>> mesh = jax.make_mesh((1,), ("i",))
      >>> with jax.set_mesh(mesh):
      ...     y = jax.reshard(jnp.arange(4), jax.P("i"))
      ...
      >>> jax.typeof(y)
      ShapedArray(int32[4@i])
    """
    leaves, tree = pytree.tree_flatten(xs)
    placed = []
    for x, where in zip(leaves, _places(out_shardings, tree), strict=True):
        if where is not None:
            if isinstance(where, PartitionSpec) and not any(where[aval_of(x).ndim :]):
                where = where.update(where[: aval_of(x).ndim])  # one spec for leaves of several ranks
            to = executors.get().resolve(where, "out_shardings of reshard", aval_of(x), typed=True)
            if _forbidden.value and aval_of(x).split is not None:
                types = [aval_of(x)]
                _check_kept(Operation(reshard_p, types, types, types[0].split), [_moved_type(types[0], to)])
            x = moved(x, to)
        placed.append(x)
    return pytree.tree_unflatten(tree, placed)


def _moved_type(aval: AbstractValue, to: Any) -> AbstractValue:
    return aval.update(sharding=to.sharding_of_type(aval))


def _places(prefix: Any, tree) -> list:
    is_place = lambda p: p is None or isinstance(p, PartitionSpec)
    return pytree.tree_broadcast_leaves(prefix, pytree.skeleton(tree), is_place)


def auto_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, out_sharding: Any = None
) -> Callable[..., Any]:
    """Call a function with explicit axes as automatic ones: inside, the compiler chooses the split of values.

    Args:
      f: a function of pytrees of arrays. Without it, returns a decorator.
      axes: the mesh axes, a name or a sequence of them. Default: all. Over the other axes, types still have the split
        of values.
      out_sharding: the split of the results: a sharding or `PartitionSpec`, or a pytree prefix of the result. Can
        also be an argument of each call.

    Examples:

      >>> mesh = jax.make_mesh((1,), ("i",))
      >>> with jax.set_mesh(mesh):
      ...     x = jax.reshard(jnp.arange(4.), jax.P("i"))
      ...     y = jax.sharding.auto_axes(lambda x: x + x.sum(), out_sharding=jax.P("i"))(x)
      ...
      >>> y
      Array([6., 7., 8., 9.], dtype=float32)
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    def automatic(*args, out_sharding=out_sharding, **kwargs):
        if out_sharding is None:
            raise TypeError("auto_axes: the sharding of the result is missing; pass out_sharding=P(...)")
        names = _chosen("auto_axes", axes)
        args, kwargs = pytree.tree_map(lambda x: _automatic_over(x, names), (args, kwargs))
        with meshes.with_axis_types(AxisType.Auto, names):
            out = f(*args, **kwargs)
        return reshard(out, out_sharding)

    return automatic


def explicit_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, in_sharding: Any = None
) -> Callable[..., Any]:
    """Call a function with automatic axes as explicit ones: inside, types have the split of values.

    Args:
      f: a function of pytrees of arrays. Without it, returns a decorator.
      axes: the mesh axes, a name or a sequence of them. Default: all.
      in_sharding: the split of the arguments inside: a `PartitionSpec` of the current mesh, or a pytree prefix of the
        arguments. Can also be an argument of each call. A call without arrays needs none.

    Examples:

      >>> mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> def f(x):
      ...     print(jax.typeof(x))
      ...     return 2 * x
      ...
      >>> with jax.set_mesh(mesh):
      ...     y = jax.jit(jax.sharding.explicit_axes(f, in_sharding=jax.P("i")))(jnp.arange(4))
      ...
      int32[4@i]
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f)
    def explicit(*args, in_sharding=in_sharding, **kwargs):
        if in_sharding is None and pytree.tree_leaves(args):
            raise TypeError("explicit_axes: the shardings of the arguments are missing; pass in_sharding=P(...)")
        if kwargs:
            raise TypeError(f"explicit_axes: arguments are given by position, got {sorted(kwargs)} by name")
        names = _chosen("explicit_axes", axes)
        with meshes.with_axis_types(AxisType.Explicit, names):
            out = f(*(args if in_sharding is None else reshard(args, in_sharding)))
        return pytree.tree_map(lambda x: _automatic_over(x, names), out)

    return explicit


def _chosen(name: str, axes: Any) -> tuple[str, ...] | None:
    """The axes of the current mesh that a user names; None: all."""
    if axes is None:
        return None
    have, names = meshes.get_abstract_mesh().axis_names, (axes,) if isinstance(axes, str) else tuple(axes)
    unknown = [n for n in names if n not in have]
    if unknown:
        raise ValueError(
            public(
                f"{name}(axes={axes!r}): {unknown[0]!r} is not an axis of the mesh in force, which has {have}; enter the"
                " mesh with jax.set_mesh, or name one of its axes"
            )
        )
    return None if set(names) == set(have) else names


def _automatic_over(x: Any, axes: Sequence[str] | None) -> Any:
    """`x`, with a type without the split over some axes (None: all)."""
    split = getattr(aval_of(x), "split", None)
    if split is None or axes is None or all(a in axes for e in split.spec for a in axes_of(e)):
        return free(x)
    mesh = split.mesh.update(axis_types=meshes.changed_types(split.mesh, AxisType.Auto, axes))
    return reshard_p.bind(x, to=split.update(mesh=mesh), src=split)
