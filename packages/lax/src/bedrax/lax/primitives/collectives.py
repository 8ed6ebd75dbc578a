"""Collectives: operations across the named axes of the enclosing transformations (`vmap`, `shard_map`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from bedrax import lax, pytree
from bedrax.core import dims, dtypes, offers, tracing
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of, scalar_aval
from bedrax.core.tables import families_on_bases, named_axes, print_rules, varying_rules
from bedrax.core.tracing import Position, Primitive, Tracer, current, pvary_p
from bedrax.core.tracing import axis_size as _axis_size
from bedrax.lax.elementwise_kinds import check_numbers

families_on_bases.add("collectives")

_FAMILY = "collectives"


def names_of(axis_name: Any) -> tuple[Any, ...]:
    """The names of axes that an argument or parameter ``axis_name`` stands for."""
    return tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)


def _size(axis_name, groups=None) -> int:
    if groups is not None:
        return len(groups[0])
    return math.prod(_axis_size(n) for n in names_of(axis_name))


def _unbound(*args, **params):
    names = names_of(params.get("axes", params.get("axis_name")))
    for name in names:
        _axis_size(name)  # raises, naming the axis
    raise NotImplementedError(f"a collective over {names} was reached outside the transformation that maps these axes")


def _collective(name: str, shape_rule: Callable, named_by: str = "axis_name", equal: bool = False) -> Primitive:
    """A collective; its result is equal on every index of its axes, or (`equal` unset) may differ."""
    prim = Primitive(name, _FAMILY)
    prim.abstract(shape_rule)
    prim.def_impl(_unbound)
    named_axes.add(prim, lambda params: names_of(params[named_by]))

    @varying_rules.rule(prim)
    def varying(axes, params):
        own = frozenset(names_of(params[named_by])) & current.varying
        every = own.union(*axes)
        return every, every - own if equal and params.get("axis_index_groups") is None else every

    return prim


def _same(aval, *, axes, **_):
    for n in axes:
        _axis_size(n)
    return aval.strip_weak_type()


def _reduction(name: str, equal: bool = False) -> Primitive:
    def shape_rule(aval, **params):
        check_numbers(name, aval)
        return _same(aval, **params)

    return _collective(name, shape_rule, "axes", equal)


# params: axes (a tuple of names), axis_index_groups
psum_p: Final = _reduction("psum")
pmax_p: Final = _reduction("pmax", equal=True)
pmin_p: Final = _reduction("pmin", equal=True)
# The sum over axes that types record as varying: it is linear, and its transpose is `pvary`, not a sum.
psum_invariant_p: Final = _reduction("psum_invariant", equal=True)
print_rules.add(pvary_p, lambda params: {"axes": tuple(sorted(params["axes"], key=str))})


# Converts between a value that varies over manual axes and partial sums, or a sum, over them. On each device it is
# the identity. params: axes (a frozenset of names), to, src (the splits in the types of the result and of the operand),
# varying (whether the result varies over the axes, or the operand)
cast_p: Final = Primitive("pcast", _FAMILY)
cast_p.abstract(lambda aval, *, axes, to, src, varying: aval if aval.split == to else aval.update(sharding=to))
named_axes.add(cast_p, lambda params: tuple(params["axes"]))
varying_rules.add(
    cast_p, lambda axes, params: (None, axes[0] | params["axes"] if params["varying"] else axes[0] - params["axes"])
)


def cast(x: Any, axes: frozenset[Any], to: str, kind: Any = None, mesh: Any = None) -> Any:
    """Change the state of `x` over manual axes: varying, partial sums, or a sum.

    Args:
      to: "varying", "unreduced" or "reduced".
      kind: of partial values; None: a sum.
      mesh: the mesh of the axes, for a value whose type has none; None: the current one.
    """
    if not axes:
        return x
    aval = aval_of(x)
    old = aval.manual_axis_type
    new = old.update(varying=old.varying - axes, unreduced=old.unreduced - axes, reduced=old.reduced - axes)
    new = new.update(**{to: getattr(new, to) | axes}, **({} if kind is None else {"unreduced_kind": kind}))
    split = offers.offered("split by manual axes")(aval, new, mesh)
    return cast_p.bind(x, axes=axes, to=split, src=aval.split, varying=to == "varying")


def _cast_sums(x: Any, axes: frozenset[Any]) -> tuple[Any, frozenset[Any]]:
    """Cast a value to vary over the `axes` over which it is a sum. Returns it and the remaining axes."""
    held = aval_of(x).manual_axis_type
    if parts := held.unreduced & axes:
        raise offers.offered("error of splits")(
            f"a value of type {aval_of(x).short()} is partial sums over {sorted(map(str, parts))}, and is used as one that"
            " varies there. Sum it first, with lax.psum or psum_scatter"
        )
    return cast(x, held.reduced & axes, "varying"), axes - held.reduced


tracing.cast_sums = _cast_sums


def _combined(x: Any, axes: tuple[Any, ...], name: str) -> Any:
    """The operand of a reduction over manual axes: its partial values over them as values that vary.

    Raises:
      ValueError: it is complete over an axis already, or of another kind.
    """
    if not isinstance(x, Tracer) or x.aval.split is None:
        return x
    held, wanted = x.aval.manual_axis_type, {"psum": "sum", "psum_scatter": "sum", "pmax": "max", "pmin": "min"}[name]
    if done := held.reduced.intersection(axes):
        raise ValueError(
            f"{name}: a value of type {x.aval.short()} is the sum over {sorted(map(str, done))} already, and is equal"
            " there. For a sum of these equal values, cast it first: lax.pcast(x, axis, to='varying')"
        )
    own = held.unreduced.intersection(axes)
    if own and held.unreduced_kind.name != wanted:
        raise ValueError(
            f"{name}: a value of type {x.aval.short()} is parts of kind {held.unreduced_kind.name}, whose combination is"
            f" p{held.unreduced_kind.name}"
        )
    return cast(x, own, "varying")


# params: axis_name, perm (pairs: source, destination)
ppermute_p: Final = _collective("ppermute", lambda aval, *, axis_name, perm: _same(aval, axes=names_of(axis_name)))


def _gathered(aval, *, all_gather_dimension, axis_name, axis_index_groups, axis_size, tiled):
    shape = list(aval.shape)
    if tiled:
        shape[all_gather_dimension] *= axis_size
    else:
        shape.insert(all_gather_dimension, axis_size)
    return ShapedArray(tuple(shape), aval.dtype)


# params: all_gather_dimension, axis_name, axis_index_groups, axis_size, tiled
all_gather_p: Final = _collective("all_gather", _gathered)
all_gather_invariant_p: Final = _collective("all_gather_invariant", _gathered, equal=True)


def _scattered(aval, *, scatter_dimension, axis_name, axis_index_groups, axis_size, tiled):
    check_numbers("psum_scatter", aval)
    shape = list(aval.shape)
    n = shape[scatter_dimension]
    if tiled:
        if n % axis_size:
            raise ValueError(
                f"psum_scatter: the length {n} of axis {scatter_dimension} is not divisible by {axis_size}, the size of the"
                f" mapped axis {axis_name!r}; pad it"
            )
        shape[scatter_dimension] = n // axis_size
    else:
        if n != axis_size:
            raise ValueError(
                f"psum_scatter: axis {scatter_dimension} has length {n}; without tiled=True it must be the size of the mapped"
                f" axis {axis_name!r}, {axis_size}"
            )
        del shape[scatter_dimension]
    return ShapedArray(tuple(shape), aval.dtype)


# params: scatter_dimension, axis_name, axis_index_groups, axis_size, tiled
reduce_scatter_p: Final = _collective("reduce_scatter", _scattered)


def _exchanged(aval, *, split_axis, concat_axis, axis_name, axis_index_groups, tiled):
    shape = list(aval.shape)
    n = _size(axis_name, axis_index_groups)
    if tiled:
        if shape[split_axis] % n:
            raise ValueError(
                f"all_to_all: length {shape[split_axis]} of axis {split_axis} is not divisible by {n}, the size of the mapped"
                f" axis {axis_name!r}; pad it"
            )
        shape[split_axis] //= n
        shape[concat_axis] *= n
    else:
        del shape[split_axis]
        shape.insert(concat_axis, n)
    return ShapedArray(tuple(shape), aval.dtype)


# params: split_axis, concat_axis, axis_name, axis_index_groups, tiled
all_to_all_p: Final = _collective("all_to_all", _exchanged)

# params: axis_name, axis_index_groups; operands: operand, output, input_offsets, send_sizes, output_offsets, recv_sizes
ragged_all_to_all_p: Final = _collective("ragged_all_to_all", lambda operand, output, *_, axis_name, **__: output)

# params: axis_name
axis_index_p: Final = _collective(
    "axis_index", lambda *, axis_name: (_axis_size(axis_name), scalar_aval(np.dtype(np.int32)))[1]
)


def _groups(axis_index_groups, axis_name, any_lengths: bool = False) -> tuple | None:
    """The groups as tuples, checked. Unless `any_lengths`, they have one length."""
    if axis_index_groups is None:
        return None
    if not all(map(np.iterable, axis_index_groups)):
        raise TypeError(f"axis_index_groups must be a list of lists of indices, got {axis_index_groups}")
    groups = tuple([tuple([dims.integer(i, "an index in axis_index_groups") for i in g]) for g in axis_index_groups])
    if sorted(i for g in groups for i in g) != list(range(_size(axis_name))):
        raise ValueError(
            f"axis_index_groups must cover all indices of the axis {axis_name!r}, 0 to {_size(axis_name) - 1}, each once; got"
            f" {axis_index_groups}"
        )
    groups = tuple(filter(None, groups))
    if not any_lengths and len(set(map(len, groups))) > 1:
        raise ValueError(
            f"axis_index_groups must have one length, got {axis_index_groups}; psum, pmean, pmax and pmin take groups of"
            " several lengths"
        )
    return groups


def _members(names, groups) -> Any:
    """The number of indices in the group of each index: an integer, or an array where groups differ."""
    if groups is None or len(set(map(len, groups))) == 1:
        return _size(names, groups)
    counts = np.zeros(_size(names), np.int32)
    for group in groups:
        counts[list(group)] = len(group)
    return lax.dynamic_index_in_dim(counts, axis_index(names), 0, keepdims=False)


def _check_names(axis_name) -> tuple:
    names = names_of(axis_name)
    for n in names:
        if isinstance(n, int) and not isinstance(n, bool):
            raise NotImplementedError(f"no collectives over positional axes ({n}): reduce the array instead")
        _axis_size(n)
    return names


def _one_name(axis_name):
    """A name, or the tuple of several, as params hold it."""
    names = _check_names(axis_name)
    return names[0] if len(names) == 1 else names


def _place(what: str, axis: int, rank: int) -> int:
    """An axis of an array as a position."""
    axis = dims.integer(axis, what)
    if not -rank <= axis < rank:
        which = f"there are {rank}, 0 to {rank - 1}" if rank else "it has rank 0"
        raise ValueError(f"{what} is {axis}, which the array does not have: {which}")
    return axis % rank


def _reduce(prim: Primitive, x, axis_name, axis_index_groups):
    names = _check_names(axis_name)
    if not names:
        return x
    groups = _groups(axis_index_groups, axis_name, any_lengths=True)
    return pytree.tree_map(
        lambda leaf: prim.bind(_combined(leaf, names, prim.name), axes=names, axis_index_groups=groups), x
    )


def _as_dtype(n: Any, dtype: Any) -> Any:
    return lax.convert_element_type(n, dtype) if isinstance(n, Tracer) else np.asarray(n).astype(dtype)[()]


def psum(x: Any, axis_name: Hashable, *, axis_index_groups: Sequence[Any] | None = None) -> Any:
    """Sum over the named axis (or axes).

    Args:
      x: a pytree of arrays. A Python number or other constant is multiplied by the axis size.
      axis_name: name, or tuple of names, of axes in scope.
      axis_index_groups: lists of indices of the axis, each index in one of them; each group has its own sum. Default: all
        indices together.

    Returns:
      A pytree like `x`: the sum, on every index of the axis.

    Examples:

      >>> jax.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([1., 3., 4.]))
      Array([0.125, 0.375, 0.5  ], dtype=float32)
    """
    names = _check_names(axis_name)
    groups = _groups(axis_index_groups, axis_name, any_lengths=True)

    def total(leaf):
        if not isinstance(leaf, Tracer):
            size = _members(names, groups)
            if type(leaf) is bool:
                leaf = int(leaf)
            if isinstance(leaf, int | float | complex) and isinstance(size, int):
                return leaf * size
            leaf = lax.asarray(leaf)
            if leaf.dtype == np.bool_:
                leaf = lax.convert_element_type(leaf, dtypes.default_int_dtype())
            return lax.mul(leaf, _as_dtype(size, leaf.dtype))  # a narrow integer wraps around, as sums do
        if aval_of(leaf).dtype == np.bool_:
            leaf = lax.convert_element_type(leaf, dtypes.default_int_dtype())
        if not names:
            return leaf
        leaf = _combined(leaf, names, "psum")
        tracked = current.varying if groups is None else frozenset()
        others, own = tuple(n for n in names if n not in tracked), tuple(n for n in names if n in tracked)
        if others:
            leaf = psum_p.bind(leaf, axes=others, axis_index_groups=groups)
        return psum_invariant_p.bind(leaf, axes=own, axis_index_groups=None) if own else leaf

    return pytree.tree_map(total, x)


def pmean(x: Any, axis_name: Hashable, *, axis_index_groups: Sequence[Any] | None = None) -> Any:
    """Return the mean over the named axis (or axes).

    Args:
      x: a pytree of arrays.
      axis_name: the name, or a tuple of names, of axes in scope: of `vmap` or `shard_map`.
      axis_index_groups: lists of indices of the axis, each index in one of them; the groups are separate axes. Default:
        all indices together.

    Returns:
      A pytree like `x`, of float or complex dtypes: the mean, on every index of the axis.

    Raises:
      NameError: no axis of this name is in scope.

    Examples:

      >>> jax.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(jnp.array([1., 3., 2.]))
      Array([-1.,  1.,  0.], dtype=float32)
    """
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    n = _members(names_of(axis_name), _groups(axis_index_groups, axis_name, any_lengths=True))

    def divide(leaf):
        dtype = dtypes.to_inexact_dtype(aval_of(leaf).dtype)
        return lax.div(lax.convert_element_type(leaf, dtype), _as_dtype(n, dtype))

    return pytree.tree_map(divide, total)


def pmax(x: Any, axis_name: Hashable, *, axis_index_groups: Sequence[Any] | None = None) -> Any:
    """Return the maximum over the named axis (or axes).

    Args:
      x: a pytree of arrays.
      axis_name: the name, or a tuple of names, of axes in scope: of `vmap` or `shard_map`.
      axis_index_groups: lists of indices of the axis, each index in one of them; the groups are separate axes. Default:
        all indices together.

    Returns:
      A pytree like `x`: the maximum, on every index of the axis.

    Raises:
      NameError: no axis of this name is in scope.

    Examples:

      >>> jax.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 3, 2]))
      Array([3, 3, 3], dtype=int32)
    """
    return _reduce(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Hashable, *, axis_index_groups: Sequence[Any] | None = None) -> Any:
    """Return the minimum over the named axis (or axes).

    Args:
      x: a pytree of arrays.
      axis_name: the name, or a tuple of names, of axes in scope: of `vmap` or `shard_map`.
      axis_index_groups: lists of indices of the axis, each index in one of them; the groups are separate axes. Default:
        all indices together.

    Returns:
      A pytree like `x`: the minimum, on every index of the axis.

    Raises:
      NameError: no axis of this name is in scope.

    Examples:

      >>> jax.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([1, 3, 2]))
      Array([1, 1, 1], dtype=int32)
    """
    return _reduce(pmin_p, x, axis_name, axis_index_groups)


def ppermute(x: Any, axis_name: Hashable, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values along the named axis, from each index to at most one other.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis in scope: of `vmap` or `shard_map`.
      perm: pairs ``(source index, destination index)``.

    Returns:
      A pytree like `x`: the values of the source. An index that is not a destination gets zeros.

    Raises:
      ValueError: an index sends or receives twice, or is none of the axis.
      NameError: no axis of this name is in scope.

    Examples:

      >>> around = [(0, 1), (1, 2), (2, 0)]
      >>> jax.vmap(lambda x: lax.ppermute(x, "i", around), axis_name="i")(jnp.array([5, 6, 7]))
      Array([7, 5, 6], dtype=int32)
    """
    axis_name = _one_name(axis_name)
    perm = tuple((dims.integer(s, "an index in perm"), dims.integer(d, "an index in perm")) for s, d in perm)
    if len({s for s, _ in perm}) != len(perm) or len({d for _, d in perm}) != len(perm):
        raise ValueError(f"ppermute: each index sends and receives at most once, got perm={perm}")
    size = _size(axis_name)
    if any(not 0 <= i < size for pair in perm for i in pair):
        raise ValueError(f"ppermute: the indices of the axis {axis_name!r} are 0 to {size - 1}, got perm={perm}")
    return pytree.tree_map(lambda leaf: ppermute_p.bind(leaf, axis_name=axis_name, perm=perm), x)


def pshuffle(x: Any, axis_name: Hashable, perm: Sequence[int]) -> Any:
    """Reorder values along the named axis: index ``i`` gets the value of index ``perm[i]``.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis in scope: of `vmap` or `shard_map`.
      perm: the indices of the axis in another order, each once.

    Returns:
      A pytree like `x`.

    Raises:
      ValueError: `perm` does not have each index once.
      NameError: no axis of this name is in scope.

    Examples:

      >>> jax.vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.array([5, 6, 7]))
      Array([7, 5, 6], dtype=int32)
    """
    size = _size(_one_name(axis_name))
    perm = [dims.integer(i, "pshuffle: an index in perm") for i in perm]
    if sorted(perm) != list(range(size)):
        raise ValueError(
            f"pshuffle: perm orders the indices 0 to {size - 1} of the axis {axis_name!r}, each once; got {perm}"
        )
    return ppermute(x, axis_name, [(s, d) for d, s in enumerate(perm)])


def all_gather(
    x: Any,
    axis_name: Hashable,
    *,
    axis_index_groups: Sequence[Any] | None = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """Collect all values along the named axis, on every index.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis in scope: of `vmap` or `shard_map`.
      axis_index_groups: lists of indices of the axis, each index in one of them; the groups are separate axes. Default:
        all indices together.
      axis: the axis of the results along which values are stacked, or concatenated.
      tiled: concatenate the values along an axis that they have, in place of stacking them along a new one.
      to: the state of the result over manual axes: "varying"; "invarying" (or "invariant"), because all devices have
        it; or "reduced", so that its cotangent is partial sums.

    Returns:
      A pytree like `x`. Each leaf has one axis more, of the length of the named axis; with `tiled`, an axis that is as many
      times longer.

    Raises:
      NameError: no axis of this name is in scope.

    Examples:

      >>> jax.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.array([1, 2]))
      Array([[1, 2],
             [1, 2]], dtype=int32)
    """
    axis_name = _one_name(axis_name)
    prims = {
        "varying": all_gather_p,
        "invarying": all_gather_invariant_p,
        "invariant": all_gather_invariant_p,
        "reduced": all_gather_p,
    }
    if to not in prims:
        raise ValueError(f"all_gather: to is one of {', '.join(prims)}, got {to!r}; see `pcast`")
    groups = _groups(axis_index_groups, axis_name)
    size = _size(axis_name, groups)
    prim = prims[to if current.varying.issuperset(names_of(axis_name)) else "varying"]

    def gather(leaf):
        rank = len(aval_of(leaf).shape) + (not tiled)
        out = prim.bind(
            leaf,
            all_gather_dimension=_place("all_gather: axis", axis, rank),
            axis_name=axis_name,
            axis_index_groups=groups,
            axis_size=size,
            tiled=tiled,
        )
        own = frozenset(names_of(axis_name)) & current.varying
        return cast(out, own, "reduced") if to == "reduced" and groups is None else out

    return pytree.tree_map(gather, x)


def psum_scatter(
    x: Any,
    axis_name: Hashable,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Sequence[Any] | None = None,
    tiled: bool = False,
) -> Any:
    """Sum over the named axis. Index ``i`` of the axis keeps the ``i``-th part of the sum.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis in scope: of `vmap` or `shard_map`.
      scatter_dimension: the axis of the arrays that is cut into parts, one for each index.
      axis_index_groups: lists of indices of the axis, each index in one of them; the groups are separate axes. Default:
        all indices together.
      tiled: the parts keep this axis, and its length is a multiple of that of the named axis. Otherwise the lengths are
        equal, and the parts do not have the axis.

    Returns:
      A pytree like `x`, of the parts. Booleans are counted.

    Raises:
      NameError: no axis of this name is in scope.

    Examples:

      >>> x = jnp.array([[1, 2], [10, 20]])
      >>> jax.vmap(lambda row: lax.psum_scatter(row, "i"), axis_name="i")(x)
      Array([11, 22], dtype=int32)
    """
    axis_name = _one_name(axis_name)
    groups = _groups(axis_index_groups, axis_name)
    size = _size(axis_name, groups)

    def scatter(leaf):
        if aval_of(leaf).dtype == np.bool_:
            leaf = lax.convert_element_type(leaf, dtypes.default_int_dtype())
        return reduce_scatter_p.bind(
            _combined(leaf, names_of(axis_name), "psum_scatter"),
            scatter_dimension=_place("psum_scatter: scatter_dimension", scatter_dimension, len(aval_of(leaf).shape)),
            axis_name=axis_name,
            axis_index_groups=groups,
            axis_size=size,
            tiled=tiled,
        )

    return pytree.tree_map(scatter, x)


@pytree.register_pytree_node_class
class Future:
    """The result of a started collective: `done` waits for it.

    XLA makes two halves of a collective itself, and moves them apart as far as the program allows; so the program holds
    one operation, and a future is a pytree with the result as its leaf.
    """

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    @property
    def inner_aval(self) -> Any:
        """The type of the result."""
        return aval_of(self._value)

    def done(self) -> Any:
        """The result: an array."""
        return self._value

    def tree_flatten(self) -> tuple[Any, ...]:
        """The result as the only child."""
        return (self._value,), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Sequence[Any]) -> Future:
        """A future of another result."""
        return cls(*children)

    def __repr__(self) -> str:
        return f"Future({self._value!r})"


def psum_scatter_start(
    x: Any,
    axis_name: Hashable,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Sequence[Any] | None = None,
    tiled: bool = False,
) -> Any:
    """Start `psum_scatter`; write independent computations before the call of `done`.

    Args:
      x, axis_name, scatter_dimension, axis_index_groups, tiled: as in `psum_scatter`.

    Returns:
      For each leaf of `x` a future; its method ``done()`` returns the array.

    Examples:

      >>> x = jnp.array([[1, 2], [10, 20]])
      >>> def parts(row):
      ...     started = lax.psum_scatter_start(row, "i")
      ...     return row.max(), started.done()
      >>> jax.vmap(parts, axis_name="i")(x)
      (Array([ 2, 20], dtype=int32), Array([11, 22], dtype=int32))
    """
    out = psum_scatter(
        x, axis_name, scatter_dimension=scatter_dimension, axis_index_groups=axis_index_groups, tiled=tiled
    )
    return pytree.tree_map(Future, out)


def all_to_all(
    x: Any,
    axis_name: Hashable,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Sequence[Any] | None = None,
    tiled: bool = False,
) -> Any:
    """Split an array axis over the named axis, and gather the named axis into an array axis.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis in scope: of `vmap` or `shard_map`.
      split_axis: the array axis to split; without `tiled` its size is the axis size, and it is removed.
      concat_axis: the axis of the results along which the pieces are stacked (or, `tiled`, concatenated).
      axis_index_groups: lists of indices of the axis, each index in one of them; the groups are separate axes. Default:
        all indices together.
      tiled: pieces keep the split axis, and are concatenated along an axis that they have.

    Returns:
      A pytree like `x`: index ``i`` has the ``i``-th piece of every index.

    Raises:
      NameError: no axis of this name is in scope.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jax.vmap(lambda row: lax.all_to_all(row, "i", 0, 0), axis_name="i")(x)
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    axis_name = _one_name(axis_name)
    groups = _groups(axis_index_groups, axis_name)
    size = _size(axis_name, groups)

    def exchange(leaf):
        rank = len(aval_of(leaf).shape)
        split, concat = (
            _place(f"all_to_all: {name}", d, rank)
            for name, d in (("split_axis", split_axis), ("concat_axis", concat_axis))
        )
        if not tiled and aval_of(leaf).shape[split] != size:
            raise ValueError(
                f"all_to_all: axis {split_axis} has length {aval_of(leaf).shape[split]}; without tiled=True it"
                f" must be the size of the axis {axis_name!r}, {size}"
            )
        return all_to_all_p.bind(
            leaf, split_axis=split, concat_axis=concat, axis_name=axis_name, axis_index_groups=groups, tiled=tiled
        )

    return pytree.tree_map(exchange, x)


def pswapaxes(x: Any, axis_name: Hashable, axis: int, *, axis_index_groups: Sequence[Any] | None = None) -> Any:
    """Swap the named axis with an array axis of equal length.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis in scope: of `vmap` or `shard_map`.
      axis: the axis of the arrays.
      axis_index_groups: lists of indices of the axis, each index in one of them; the groups are separate axes. Default:
        all indices together.

    Returns:
      A pytree like `x`.

    Raises:
      NameError: no axis of this name is in scope.

    Examples:

      >>> x = jnp.array([[1, 2], [10, 20]])
      >>> jax.vmap(lambda row: lax.pswapaxes(row, "i", 0), axis_name="i")(x)
      Array([[ 1, 10],
             [ 2, 20]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: Any, axis_name: Hashable, source: int) -> Any:
    """Return the value that one index of the named axis has, on every index.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis in scope: of `vmap` or `shard_map`.
      source: the index whose value is taken, an int.

    Returns:
      A pytree like `x`.

    Raises:
      ValueError: the axis has no index `source`.
      NameError: no axis of this name is in scope.

    Examples:

      >>> jax.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.array([5, 6, 7]))
      Array([6, 6, 6], dtype=int32)
    """
    n, source = _size(axis_name), dims.integer(source, "pbroadcast: source")
    if not 0 <= source < n:
        raise ValueError(f"pbroadcast: source={source} is not an index of the axis {axis_name!r} of size {n}")
    return pytree.tree_map(lambda leaf: lax.index_in_dim(all_gather(leaf, axis_name), source, 0, keepdims=False), x)


def pcast(x: Any, axis_name: Hashable, *, to: str) -> Any:
    """Change the state of values inside `shard_map` over manual axes. Only their types change.

    Args:
      x: a pytree of arrays.
      axis_name: the name, or a tuple of names, of manual axes. A value that has the state over an axis keeps it.
      to: the new state. ``"varying"``: the values on the devices may differ; from a value that is equal on all devices,
        or from a reduced one. ``"unreduced"``: the values are partial sums; from a varying value. ``"reduced"``: the
        values are equal, and the cotangent is partial sums; from a value that is equal on all devices.

    Raises:
      ValueError: a value has no such cast. `psum` and `psum_scatter` sum partial sums.

    Examples:

      >>> mesh = jax.make_mesh((1,), ("i",))
      >>> @jax.shard_map(mesh=mesh, in_specs=jax.P(), out_specs=jax.P("i"))
      ... def f(x):
      ...     return lax.pcast(x, "i", to="varying")
      ...
      >>> f(jnp.array([1., 2.]))
      Array([1., 2.], dtype=float32)
    """
    names = frozenset(_check_names(axis_name)) & current.varying
    if to not in _CASTS:
        raise ValueError(f"pcast: to is one of {', '.join(_CASTS)}, got {to!r}")

    def change(leaf):
        if not names:
            return leaf
        aval = aval_of(leaf)
        held = aval.manual_axis_type
        found = {"varying": held.varying & names, "unreduced": held.unreduced & names, "reduced": held.reduced & names}
        found["invarying"] = names.difference(*found.values())
        for state, axes in found.items():
            if axes and state != to and state not in _CASTS[to]:
                raise ValueError(
                    f"pcast: a value of type {aval.short()} is {state} over {sorted(map(str, axes))}, and is cast to {to!r}"
                    f" only from {' or '.join(_CASTS[to])}{_ADVICE.get((state, to), '')}"
                )
        if found["invarying"] and to != "unreduced":
            leaf = pvary_p.bind(leaf, axes=found["invarying"])
        if to == "reduced":
            return cast(leaf, found["invarying"], to)
        return cast(leaf, found["varying"] if to == "unreduced" else found["reduced"], to)

    return pytree.tree_map(change, x)


_CASTS = {"varying": ("invarying", "reduced"), "unreduced": ("varying",), "reduced": ("invarying",)}
_ADVICE = {
    ("invarying", "unreduced"): ". The sum of equal parts is another value: for that, cast it to 'varying' first",
    ("unreduced", "varying"): ". Sum it, with lax.psum or psum_scatter",
    ("unreduced", "reduced"): ". Sum it with lax.psum, then cast it",
}


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Hashable,
    axis_index_groups: Sequence[Any] | None = None,
) -> Any:
    """Send slices of rows, of lengths that differ, to every index of the named axis.

    Args:
      operand: rows to send.
      output: the array that received rows are written to; the other rows stay.
      input_offsets, send_sizes: per receiver, the first row of `operand` that it gets, and the number of rows.
      output_offsets: per receiver, the first row of its output to which they are written.
      recv_sizes: per sender, the number of rows from it.
      axis_name: the named axis.
      axis_index_groups: lists of indices, which exchange rows among themselves only; None: all indices.

    Returns:
      An array like `output`.

    Examples:

      >>> mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> @jax.jit
      ... @jax.shard_map(mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P("i"))
      ... def send_to_myself(rows, from_, size, to):
      ...     return lax.ragged_all_to_all(rows, 0 * rows, from_, size, to, size, axis_name="i")
      ...
      >>> first, size, to = jnp.array([1]), jnp.array([2]), jnp.array([0])
      >>> send_to_myself(jnp.array([5, 6, 7]), first, size, to)
      Array([6, 7, 0], dtype=int32)
    """
    (name,) = _check_names(axis_name)
    groups = _groups(axis_index_groups, axis_name)
    size = _size(name, groups)
    whats = dict(
        input_offsets=input_offsets, send_sizes=send_sizes, output_offsets=output_offsets, recv_sizes=recv_sizes
    )
    for what, x in whats.items():
        aval = aval_of(x)
        if aval.shape != (size,) or not dtypes.is_integer(aval.dtype):
            raise ValueError(
                f"ragged_all_to_all: {what} has an integer for each of the {size} indices of axis {name!r}, got"
                f" {aval.short()}"
            )
    rows, into = aval_of(operand), aval_of(output)
    if rows.dtype != into.dtype or not rows.shape or rows.shape[1:] != into.shape[1:]:
        raise ValueError(
            f"ragged_all_to_all: operand and output are rows of one shape and dtype, got {rows.short()} and {into.short()}"
        )
    return ragged_all_to_all_p.bind(operand, output, *whats.values(), axis_name=name, axis_index_groups=groups)


def _one_sided(name: str, what: str) -> Callable[..., NoReturn]:
    def call(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(
            f"lax.{name} is not supported: it is one half of an exchange between devices, {what}, which XLA offers on"
            " TPU alone and which has no derivative. Use ppermute: it sends and receives."
        )

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Not supported: raises NotImplementedError. It is one half of an exchange, {what}; use `ppermute`."
    return call


psend: Callable[..., NoReturn] = _one_sided("psend", "the sending one")
precv: Callable[..., NoReturn] = _one_sided("precv", "the receiving one")


def axis_index(axis_name: Hashable) -> Array:
    """The current index along the named axis (row-major for a tuple of names), an int32 scalar.

    Examples:

      >>> jax.vmap(lambda x: 10 * lax.axis_index("i") + x, axis_name="i")(jnp.array([5, 6, 7]))
      Array([ 5, 16, 27], dtype=int32)
    """
    names = _check_names(axis_name)
    index: Any = None
    for n in names:
        size = _axis_size(n)
        own = size.index if isinstance(size, Position) else axis_index_p.bind(axis_name=n)
        index = own if index is None else lax.add(lax.mul(index, np.int32(int(size))), own)
    return np.int32(0) if index is None else index


def axis_size(axis_name: Hashable) -> int:
    """Size of the named axis (the product, for a tuple of names).

    Examples:

      >>> jax.vmap(lambda x: x / lax.axis_size("i"), axis_name="i")(jnp.array([4., 8.]))
      Array([2., 4.], dtype=float32)
    """
    return _size(_check_names(axis_name))
