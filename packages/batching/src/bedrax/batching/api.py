"""`vmap`: the function that maps a function over array axes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from bedrax import pytree
from bedrax.batching.tables import AxisData
from bedrax.batching.trace import BatchTracer, batch_flat_with_aux, place
from bedrax.core import avals
from bedrax.core import dims as core_dims
from bedrax.core.avals import aval_of, is_valid_value
from bedrax.core.codes import coded
from bedrax.core.names import VMAP
from bedrax.core.objects import MappingSpec, array_form
from bedrax.core.public import public
from bedrax.core.signatures import leaf_names, signature_of
from bedrax.core.source import api_boundary, describe_function
from bedrax.core.staging import function_name
from bedrax.core.typing import P, R
from bedrax.lax.primitives.placement import is_split, moved
from bedrax.lax.primitives.reductions import reduce_sum


def _is_axis(x) -> bool:
    return x is None or type(x) is int or isinstance(x, MappingSpec)


_OF_FUNCTIONS = {"__name__": str, "__qualname__": str, "__annotations__": dict}


def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | tuple[Hashable, ...] | None = None,
    sum_match: bool = False,
) -> Callable[P, R]:
    """Map a function over axes of its arguments.

    Args:
      fun: takes and returns pytrees of arrays.
      in_axes: the axis of each argument to map over: an int, None (not mapped), or a
        tuple/list as long as the positional arguments whose entries are pytree prefixes of
        them. Keyword arguments are always mapped over axis 0. A value of a library's type has a
        `jax.experimental.hijax.MappingSpec` in place of an axis, here and in `out_axes`.
      out_axes: the position of the mapped axis in the results; a pytree prefix of them.
      axis_name: a name for collectives inside `fun` (``lax.psum`` and the like).
      axis_size: size of the mapped axis, needed only where no argument is mapped.
      spmd_axis_name: mesh axes over which the batch is spread.
      sum_match: a result whose entry in `out_axes` is None is summed over the mapped axis, if it depends on that axis.

    Returns:
      A function of batches.

    Raises:
      ValueError: sizes disagree, an axis is out of range, or the axes do not fit the arguments.
      TypeError: an argument or an axis specification is of a wrong type.

    Examples:

      >>> jax.vmap(jnp.dot)(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 1], [1, 2]]))
      Array([ 3, 11], dtype=int32)
      >>> jax.vmap(lambda x, y: x + y, in_axes=(0, None))(jnp.arange(3), 10)
      Array([10, 11, 12], dtype=int32)
    """
    if not callable(fun):
        raise TypeError(
            coded(
                "BX-NOT-CALLABLE",
                f"vmap needs a callable, got {fun!r} of type {type(fun)}; pass the function itself, without a call",
            )
        )
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    _check_axes(in_axes, out_axes)

    named: Sequence[str] = functools.WRAPPER_ASSIGNMENTS
    if type(fun) is not FunctionType:  # The __name__ of a library's callable object may have another type than str.
        named = [a for a in named if isinstance(getattr(fun, a, None), _OF_FUNCTIONS.get(a, object))]

    @functools.wraps(fun, assigned=named)
    @api_boundary
    def mapped(*args, **kwargs):
        call = _Call(fun, in_axes, out_axes, axis_size, args, kwargs)
        leaves, in_tree = pytree.tree_flatten((args, kwargs))
        dims = _normalize(leaves, _argument_axes(call, in_tree), in_tree, call)
        size = _axis_size(leaves, dims, in_tree, call)

        def flat(*xs):
            a, k = pytree.tree_unflatten(in_tree, xs)
            if vmappable:
                a, k = _changed((a, k), dims, lambda x, axes: vmappable[type(x)].element(x, axes))
            return pytree.tree_flatten(fun(*a, **k))

        split = _split_of_axis(leaves, dims, call) if avals.any_split else None
        axis = AxisData(axis_name, size, spmd_axis_name, split)
        outs, out_dims, out_tree = batch_flat_with_aux(flat, axis, leaves, dims, VMAP)
        if type(out_axes) is int:
            wanted: list[Any] = [out_axes] * len(outs)
        else:
            wanted = _prefix_axes("out_axes", out_axes, pytree.tree_unflatten(out_tree, outs), out_tree, call)
        each = enumerate(zip(outs, out_dims, wanted, strict=True))
        placed = [_placed(x, d, w, size, call, (out_tree, i), sum_match) for i, (x, d, w) in each]
        if avals.any_split:
            placed = _split_alike(placed, out_dims, wanted, split)
        out = pytree.tree_unflatten(out_tree, placed)
        if vmappable:
            out = _changed(out, wanted, lambda x, axes: vmappable[type(x)].batch(x, axes, size))
        return out

    return mapped


class Vmappable(NamedTuple):
    """The functions that map a class of pytrees whose static data depend on the shapes of the leaves.

    Attributes:
      element: ``(a batch whose leaves are elements already, mapped axis of each leaf) -> element``.
      batch: ``(an element whose leaves are batches already, mapped axis of each leaf, size) -> batch``.
    """

    element: Callable[..., Any]
    batch: Callable[..., Any]


vmappable: dict[type, Vmappable] = {}


def _changed(tree: Any, axes: Sequence[int | None], change: Callable) -> Any:
    """`tree` with ``change(node, axes of its leaves)`` for each mapped node of a class in `vmappable`."""
    rest = iter(axes)

    def visit(x):
        if type(x) not in vmappable:
            next(rest)
            return x
        own = [next(rest) for _ in pytree.tree_leaves(x)]
        return x if all(a is None for a in own) else change(x, own)

    return pytree.tree_map(visit, tree, is_leaf=lambda x: type(x) in vmappable)


def _parts(x) -> tuple:
    """A result of a function that ran on batches, as (batch, mapped axis)."""
    return (x.val, x.dim) if isinstance(x, BatchTracer) else (x, None)


class _Call(NamedTuple):
    """One call of a mapped function. Error messages print it."""

    fun: Callable[..., Any]
    in_axes: Any
    out_axes: Any
    axis_size: int | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        given = [_argument_text(a) for a in self.args]
        given += [f"{k}={_argument_text(v)}" for k, v in self.kwargs.items()]
        size = f", axis_size={self.axis_size}" if self.axis_size is not None else ""
        return (
            f"vmap({function_name(self.fun)}, in_axes={self.in_axes!r}, out_axes={self.out_axes!r}{size})"
            f"({', '.join(given)})"
        )


def _check_axes(in_axes, out_axes) -> None:
    if not (_is_axis(in_axes) or isinstance(in_axes, tuple | dict)):
        raise TypeError(
            coded(
                "BX-VMAP-IN-AXES",
                "vmap: in_axes is an int, None, or a tuple with one entry per positional argument, got"
                f" {in_axes!r} of type {type(in_axes)}",
            )
        )
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        for leaf in () if type(axes) is int else pytree.tree_leaves(axes):
            if not _is_axis(leaf):
                raise TypeError(f"vmap: {what} holds ints and None, got {axes!r}")


def _argument_axes(call: _Call, in_tree) -> list:
    """The mapped axis of each leaf of the arguments, as given."""
    axes, args, kwargs = call.in_axes, call.args, call.kwargs
    if isinstance(axes, tuple) and len(axes) != len(args):
        raise ValueError(
            coded(
                "BX-VMAP-IN-AXES",
                f"vmap: in_axes has one entry per positional argument, got {len(axes)} entries for {len(args)} arguments"
                f" in {call}",
            )
        )
    if _is_axis(axes):
        return [axes] * len(pytree.tree_leaves(args)) + [0] * len(pytree.tree_leaves(kwargs))
    return _prefix_axes("in_axes", (axes, 0), (args, kwargs), in_tree, call)


def _placed(x, dim: int | None, wanted: int | None, size, call: _Call, of: tuple, sums: bool = False):
    """A result with its mapped axis at the position of `out_axes`, or the sum over the axis."""
    if getattr(x, "leave", None) is not None:  # a reference: of the batch, if it was made inside
        return x.leave(lambda held: _placed(*_parts(held), wanted, size, call, of, sums))
    if wanted is None:
        if dim is not None and sums:
            return reduce_sum(x, (dim,))
        if dim is not None:
            raise ValueError(
                coded(
                    "BX-VMAP-OUT-AXES",
                    f"vmap: the result{_key(*of)} depends on a mapped argument, but its entry in out_axes is None, in"
                    f" {call}. Give it an axis (0 puts the mapped axis first).",
                )
            )
        return x
    aval = aval_of(x)
    if type(wanted) is not int or aval.represented:
        if dim != wanted:
            raise ValueError(
                f"vmap: the result{_key(*of)} of type {aval} is mapped by {dim!r}, and its entry in out_axes is"
                f" {wanted!r}, in {call}. A value of a library's type is not moved, and not repeated."
            )
        return x
    rank = len(aval.shape) + (dim is None)
    if not -rank <= wanted < rank:
        raise ValueError(
            coded(
                "BX-VMAP-OUT-AXES",
                f"vmap: the entry of out_axes for the result{_key(*of)} of rank {rank - 1} is in range({-rank}, {rank}),"
                f" got {wanted}, in {call}",
            )
        )
    return place(x, dim, wanted % rank, size)


def _split_of_axis(leaves: Sequence, dims: Sequence, call: Any) -> Any:
    """The split of the mapped axis in the types of the arguments; None if it is not split."""
    found: Any = None
    for x, d in zip(leaves, dims, strict=True):
        split = aval_of(x).split if type(d) is int and is_split(x) else None
        entry = None if split is None else split.spec[d]
        if split is None or entry is None:
            continue
        if found is None:
            found = split.update(spec=split.spec.update((entry,), unreduced=set(), reduced=set()))
        elif found.spec[0] != entry:
            raise ValueError(
                public(
                    f"vmap maps axes that are split over {found.spec[0]!r} and over {entry!r}, in {call}; split them"
                    " alike with jax.sharding.reshard"
                )
            )
    return found


def _split_alike(placed: list, out_dims: Sequence, wanted: Sequence, axis_split: Any) -> list:
    """Results, where those that depend on no mapped argument are split over the mapped axis as arguments are."""
    if axis_split is None:
        return placed
    split, entry, out = axis_split, axis_split.spec[0], []
    for x, d, at in zip(placed, out_dims, wanted, strict=True):
        if d is None and type(at) is int:
            aval = aval_of(x)
            own = split.spec.update(()) if aval.split is None else aval.split.spec
            entries = [*own, *[None] * (aval.ndim - len(own))]
            axes = entry if isinstance(entry, tuple) else (entry,)
            if not any(a in (e if isinstance(e, tuple) else (e,)) for e in entries for a in axes):
                entries[at % aval.ndim] = entry
                x = moved(x, (aval.split or split).update(spec=own.update(entries)))
        out.append(x)
    return out


def _argument_text(x) -> str:
    leaves = pytree.tree_leaves(x)
    if len(leaves) == 1 and leaves[0] is x:
        return aval_of(x).str_short(True) if is_valid_value(x) and hasattr(aval_of(x), "shape") else repr(x)
    return f"<{type(x).__name__} of {len(leaves)} leaves>"


def _prefix_axes(what: str, axes, tree, treedef, call) -> list:
    """One axis per leaf of `tree`, from a prefix of it."""
    out: list[Any] = []

    def add(axis, subtree):
        out.extend([axis] * len(pytree.tree_leaves(subtree)))

    try:
        pytree.tree_map(add, axes, tree, is_leaf=lambda x: x is None)
    except (ValueError, TypeError, KeyError):
        errors = pytree.prefix_errors(axes, tree, is_leaf=lambda x: x is None)
        if errors:
            raise errors[0](f"vmap {what}") from None
        raise ValueError(f"vmap: {what}={axes!r} is not a prefix of the structure {treedef}, in {call}") from None
    return out


def _normalize(leaves, dims, in_tree, call) -> list:
    result = []
    for i, (x, d) in enumerate(zip(leaves, dims, strict=True)):
        if d is None:
            result.append(None)
            continue
        if type(d) is int:
            leaves[i] = x = array_form(x)
        aval = aval_of(x)
        if type(d) is not int or not aval.is_array:
            if isinstance(d, MappingSpec) or aval.represented:
                result.append(_checked_spec(aval, d, _path(in_tree, i), call))
                continue
            if not (aval.is_array or aval.mutable):
                result.append(None)
                continue
        rank = len(aval.shape)
        if not -rank <= d < rank:
            path = _path(in_tree, i)
            raise ValueError(
                coded(
                    "BX-VMAP-AXIS",
                    f"vmap: axis {d} of {path} is to be mapped, but its shape is {aval.shape}, in {call}. An entry None"
                    " in in_axes passes an argument whole, to each call.",
                    [f"It is the argument {leaf_names(call.fun, in_tree)[i]} of {describe_function(call.fun)}."],
                )
            )
        result.append(d % rank)
    return result


def _checked_spec(aval, spec, path: str, call) -> Any:
    """The entry of an axes argument for a value of a library's type."""
    if not aval.represented or not isinstance(spec, MappingSpec):
        raise TypeError(
            f"vmap: {path} has type {aval}, and its entry in the axes is {spec!r}, in {call}. A value of a library's type"
            " is mapped by a MappingSpec, an array by an int."
        )
    return spec


def _path(in_tree, index: int) -> str:
    for path, leaf in _numbered(in_tree):
        if leaf == index:
            return ("args" if path[0].idx == 0 else "kwargs") + pytree.keystr(path[1:])
    return "argument"


def _key(tree, index: int) -> str:
    """The path of a leaf in a structure, such as ``['a'][0]``."""
    return next((pytree.keystr(path) for path, leaf in _numbered(tree) if leaf == index), "")


def _numbered(tree) -> list:
    """The path and the number of each leaf of a structure."""
    return [(path, i) for i, path in enumerate(pytree.leaf_paths(tree))]


def _axis_size(leaves, dims, in_tree, call: _Call):
    given = call.axis_size
    sizes = [aval_of(x).shape[d] for x, d in zip(leaves, dims, strict=True) if type(d) is int]
    if not sizes:
        if given is None:
            nothing = (
                "in_axes maps no array"
                if any(isinstance(d, MappingSpec) for d in dims)
                else "in_axes maps no argument"
                if leaves
                else "there are no arrays among the arguments"
            )
            raise ValueError(
                coded(
                    "BX-VMAP-UNMAPPED",
                    f"vmap: the size of the mapped axis is unknown: {nothing}, in {call}. Pass axis_size.",
                )
            )
        return given
    first = given if given is not None else sizes[0]
    if all(s is first or core_dims.same_dim(s, first) for s in sizes):
        return first
    raise ValueError(_sizes_differ(leaves, dims, in_tree, call))


def _sizes_differ(leaves, dims, in_tree, call: _Call) -> str:
    given = call.axis_size
    try:
        names = list(signature_of(call.fun).bind(*call.args, **call.kwargs).arguments)
    except (TypeError, ValueError):
        names = []
    groups: dict[Any, Any] = {}
    for i, (x, d) in enumerate(zip(leaves, dims, strict=True)):
        if type(d) is int:
            path = _path(in_tree, i)
            index = path[5:].split("]")[0] if path.startswith("args[") else ""
            label = f"argument {path} of type {aval_of(x).str_short(True)}"
            if index.isdigit() and int(index) < len(names):
                rest = path[5 + len(index) + 1 :]
                label = f"argument {names[int(index)]}{rest} of type {aval_of(x).str_short(True)}"
            groups.setdefault(aval_of(x).shape[d], []).append((label, d))
    lines = [f"vmap: mapped axes are of one size, but differ in {call}:"]
    if given is not None:
        lines.append(f"  * axis_size={given} was given;")
    for size, members in sorted(groups.items(), key=lambda g: -len(g[1])):
        some = ", ".join(f"axis {d} of {label}" for label, d in members[:3])
        more = f", and {len(members) - 3} more" if len(members) > 3 else ""
        lines.append(f"  * {len(members)} {'axes' if len(members) > 1 else 'axis'} of size {size}: {some}{more};")
    return coded("BX-VMAP-SIZES", "\n".join(lines)[:-1])
