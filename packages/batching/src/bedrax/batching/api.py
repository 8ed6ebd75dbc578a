"""`vmap`: the function that maps a function over array axes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable
from typing import Any

from bedrax import pytree
from bedrax.batching.tables import AxisData
from bedrax.batching.trace import batch_flat, place
from bedrax.core import dims as core_dims
from bedrax.core.avals import aval_of, is_valid_value
from bedrax.core.source import api_boundary
from bedrax.core.staging import function_name


def _is_axis(x) -> bool:
    return x is None or type(x) is int


def vmap(
    fun: Callable,
    in_axes: int | None | Any = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | tuple[Hashable, ...] | None = None,
    sum_match: bool = False,
) -> Callable:
    """Map a function over axes of its arguments.

    Args:
      fun: takes and returns pytrees of arrays.
      in_axes: which axis of each argument to map over: an int, None (not mapped), or a
        tuple/list as long as the positional arguments whose entries are pytree prefixes of
        them. Keyword arguments are always mapped over axis 0.
      out_axes: where the mapped axis appears in the results; a pytree prefix of them.
      axis_name: a name for collectives inside `fun` (``lax.psum`` and the like).
      axis_size: size of the mapped axis, needed only where no argument is mapped.
      spmd_axis_name: mesh axes over which the batch is spread.

    Returns:
      A function of batches.

    Raises:
      ValueError: sizes disagree, an axis is out of range, or the axes do not fit the arguments.
      TypeError: an argument or an axis specification is of a wrong type.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r} of type {type(fun)}")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (_is_axis(in_axes) or isinstance(in_axes, tuple | dict)):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments"
            f" passed to the function, but got in_axes={in_axes!r} of type {type(in_axes)}."
        )
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        for leaf in pytree.tree_leaves(axes):
            if type(leaf) is not int:
                raise TypeError(
                    f"vmap {what} must be an int, None, or (nested) container with those types as leaves, but got {axes!r}."
                )

    name = function_name(fun)

    @functools.wraps(fun)
    @api_boundary
    def mapped(*args, **kwargs):
        def call_text() -> str:
            given = ", ".join(
                [*(_argument_text(a) for a in args), *(f"{k}={_argument_text(v)}" for k, v in kwargs.items())]
            )
            size = f", axis_size={axis_size}" if axis_size is not None else ""
            return f"vmap({name}, in_axes={in_axes!r}, out_axes={out_axes!r}{size})({given})"

        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments"
                f" passed to the function, but got len(in_axes)={len(in_axes)}, len(args)={len(args)}"
            )
        leaves, in_tree = pytree.tree_flatten((args, kwargs))
        if _is_axis(in_axes):
            dims: list = [in_axes] * len(pytree.tree_leaves(args)) + [0] * len(pytree.tree_leaves(kwargs))
        else:
            dims = _prefix_axes("in_axes", (in_axes, 0), (args, kwargs), in_tree, call_text)
        dims = _normalize(leaves, dims, in_tree, call_text)
        size = _axis_size(leaves, dims, axis_size, in_tree, args, kwargs, fun, call_text)
        out_tree = None

        def flat(*xs):
            nonlocal out_tree
            a, k = pytree.tree_unflatten(in_tree, xs)
            outs, out_tree = pytree.tree_flatten(fun(*a, **k))
            return outs

        outs, out_dims = batch_flat(flat, AxisData(axis_name, size, spmd_axis_name), leaves, dims)
        if type(out_axes) is int:
            wanted: list = [out_axes] * len(outs)
        else:
            result = pytree.tree_unflatten(out_tree, outs)
            wanted = _prefix_axes("out_axes", out_axes, result, out_tree, call_text)
        placed = []
        for x, d, w in zip(outs, out_dims, wanted, strict=True):
            if w is None:
                if d is not None:
                    raise ValueError(
                        f"vmap has mapped output but out_axes is None: {call_text()} returned a value that depends on a"
                        " mapped argument. Give it an axis in out_axes (0 puts the mapped axis first)."
                    )
                placed.append(x)
                continue
            rank = len(aval_of(x).shape) + (d is None)
            if not -rank <= w < rank:
                raise ValueError(
                    f"axis {w} is out of bounds for array of dimension {rank}: in {call_text()}, an entry of out_axes"
                    f" must be in range({-rank}, {rank}) for a result of {rank - 1} dimensions."
                )
            placed.append(place(x, d, w % rank, size))
        return pytree.tree_unflatten(out_tree, placed)

    return mapped


def _argument_text(x) -> str:
    leaves = pytree.tree_leaves(x)
    if len(leaves) == 1 and leaves[0] is x:
        return aval_of(x).str_short(True) if is_valid_value(x) and hasattr(aval_of(x), "shape") else repr(x)
    return f"<{type(x).__name__} of {len(leaves)} leaves>"


def _prefix_axes(what: str, axes, tree, treedef, call_text) -> list:
    """One axis per leaf of `tree`, from a prefix of it."""
    out: list = []

    def add(axis, subtree):
        out.extend([axis] * len(pytree.tree_leaves(subtree)))

    try:
        pytree.tree_map(add, axes, tree, is_leaf=lambda x: x is None)
    except (ValueError, TypeError, KeyError):
        errors = (
            pytree.prefix_errors(axes, tree, is_leaf=lambda x: x is None)
            if hasattr(pytree, "prefix_errors")
            else []
        )
        if errors:
            raise errors[0](f"vmap {what}") from None
        raise ValueError(
            f"vmap {what} specification must be a tree prefix of the corresponding value, got specification {axes!r}"
            f" for value tree {treedef} in {call_text()}."
        ) from None
    return out


def _normalize(leaves, dims, in_tree, call_text) -> list:
    result = []
    for i, (x, d) in enumerate(zip(leaves, dims, strict=True)):
        if d is None:
            result.append(None)
            continue
        aval = aval_of(x)
        if not aval.is_array:
            result.append(None)
            continue
        rank = len(aval.shape)
        if not -rank <= d < rank:
            path = _path(in_tree, i)
            raise ValueError(
                "vmap was requested to map its argument along axis "
                f"{d}, which implies that its rank should be at least {d + 1 if d >= 0 else -d}, but is only {rank}"
                f" (its shape is {aval.shape}): {path} in {call_text()}."
            )
        result.append(d % rank)
    return result


def _path(in_tree, index: int) -> str:
    numbered = pytree.tree_unflatten(in_tree, list(range(in_tree.num_leaves)))
    for path, leaf in pytree.tree_flatten_with_path(numbered)[0]:
        if leaf == index:
            return ("args" if path[0].idx == 0 else "kwargs") + pytree.keystr(path[1:])
    return "argument"


def _axis_size(leaves, dims, given, in_tree, args, kwargs, fun, call_text):
    sizes = [aval_of(x).shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        if given is None:
            raise ValueError(
                "vmap must have at least one non-None value in in_axes, or axis_size must be specified"
                if leaves
                else "vmap wrapped function must be passed at least one argument containing an array, or axis_size must"
                f" be specified: got empty *args={args} and **kwargs={kwargs}"
            )
        return given
    first = given if given is not None else sizes[0]
    if all(s is first or core_dims.same_dim(s, first) for s in sizes):
        return first
    try:
        names = list(inspect.signature(fun).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        names = []
    groups: dict = {}
    for i, (x, d) in enumerate(zip(leaves, dims, strict=True)):
        if d is not None:
            path = _path(in_tree, i)
            index = path[5:].split("]")[0] if path.startswith("args[") else ""
            label = f"argument {path} of type {aval_of(x).str_short(True)}"
            if index.isdigit() and int(index) < len(names):
                rest = path[5 + len(index) + 1 :]
                label = f"argument {names[int(index)]}{rest} of type {aval_of(x).str_short(True)}"
            groups.setdefault(aval_of(x).shape[d], []).append((label, d))
    lines = [f"vmap got inconsistent sizes for array axes to be mapped, in {call_text()}:"]
    if given is not None:
        lines.append(f"  * axis_size={given} was given;")
    for size, members in sorted(groups.items(), key=lambda g: -len(g[1])):
        some = ", ".join(f"axis {d} of {label}" for label, d in members[:3])
        more = f", and {len(members) - 3} more" if len(members) > 3 else ""
        lines.append(
            f"  * {len(members)} {'axes' if len(members) > 1 else 'axis'} had size {size}: {some}{more};"
        )
    raise ValueError("\n".join(lines)[:-1])
