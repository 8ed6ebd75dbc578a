"""`shard_map` and `smap`: every device of a mesh runs one function on its blocks."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

from bedrax import pytree
from bedrax.core import caches, executors, staging
from bedrax.core.array import no_arrays
from bedrax.core.avals import aval_of
from bedrax.core.objects import array_form
from bedrax.core.public import public
from bedrax.core.signatures import signature_of
from bedrax.core.source import api_boundary
from bedrax.core.staging import function_name, of_a_trace
from bedrax.core.typing import Decorator, P, R
from bedrax.parallel import explicit, meshes, rules
from bedrax.parallel.meshes import AbstractMesh, AxisType, Mesh
from bedrax.parallel.primitives import block_split, inside, manual_sizes, names_in, parts_of, shard_map_p, whole_type
from bedrax.parallel.specs import HiPspec, Infer, PartitionSpec, axes_of
from bedrax.parallel.sums import without_axes

__all__ = ["shard_map", "smap"]


@overload
def shard_map(
    f: Callable[P, R],
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: set[Any] | frozenset[Any] = frozenset(),
    check_vma: bool = True,
) -> Callable[P, R]: ...
@overload
def shard_map(
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: set[Any] | frozenset[Any] = frozenset(),
    check_vma: bool = True,
) -> Decorator: ...
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: set[Any] | frozenset[Any] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Map a function over the blocks of its arguments: every device of a mesh runs it on its own blocks.

    Args:
      f: takes and returns pytrees of arrays, which are blocks; may call collectives over the mapped axes. Without it,
        returns a decorator.
      out_specs: a pytree prefix of the result, of `PartitionSpec`: the assembly of results from blocks. Along a mapped
        axis that a spec does not name, the blocks must be equal.
      in_specs: a pytree prefix of the tuple of arguments, of `PartitionSpec` (None: not cut). Optional if the types of
        the arguments have a split.
      mesh: the devices. Default: the current mesh (`set_mesh`).
      axis_names: the mapped axes; all if it is empty. Over the others, the compiler partitions the values.
      check_vma: types have the axes over which values vary. Results are checked, and derivatives need fewer sums.

    Returns:
      A function of whole arrays.

    Raises:
      ValueError: a spec names an axis that the mesh lacks, cuts a dimension that it does not divide, or treats results
        as equal that may differ.
      TypeError: an argument is neither a spec, a mesh nor a function.

    Examples:

      >>> mesh = jax.make_mesh((1,), ("i",))
      >>> @jax.jit
      ... @jax.shard_map(mesh=mesh, in_specs=jax.P(), out_specs=jax.P("i"))
      ... def where(x):
      ...     return x + lax.axis_index("i")
      ...
      >>> where(jnp.array([5]))
      Array([5], dtype=int32)
    """
    options = dict(out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma)
    if f is None:
        return functools.partial(shard_map, **options)
    if not callable(f):
        raise TypeError(f"shard_map needs a function, got {f!r} of type {type(f)}")

    @functools.wraps(f)
    @api_boundary
    def mapped(*args):
        def flat_specs(what, given, types, tree):
            return _flat_specs(what, given, pytree.tree_unflatten(tree, types), f)

        specs = functools.partial(flat_specs, "in_specs", in_specs)
        result_specs = functools.partial(flat_specs, "out_specs", out_specs)
        own = None if in_specs is Infer else specs
        return map_blocks(f, args, own, result_specs, mesh, axis_names, check_vma, (in_specs, out_specs))

    return mapped


def shard_map_with_check_rep(
    f: Callable[P, R], mesh: Mesh | AbstractMesh, in_specs: Any, out_specs: Any, check_rep: bool = True
) -> Callable[P, R]:
    """`shard_map` with its former interface in ``jax.experimental``.

    Args:
      f, in_specs, out_specs: as in `jax.shard_map`.
      mesh: a mesh. `f` is mapped over all its axes.
      check_rep: the former name of `check_vma`.

    Examples:

      >>> from jax.experimental.shard_map import shard_map

      >>> mesh = jax.make_mesh((1,), ("i",))
      >>> P = jax.sharding.PartitionSpec
      >>> f = shard_map(lambda x: jax.lax.psum(x.sum(), "i"), mesh, in_specs=P("i"), out_specs=P())
      >>> f(jnp.arange(4.))
      Array(6., dtype=float32)
    """
    return shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


@overload
def smap(f: Callable[P, R], /, *, in_axes: Any = Infer, out_axes: Any, axis_name: str) -> Callable[P, R]: ...
@overload
def smap(*, in_axes: Any = Infer, out_axes: Any, axis_name: str) -> Decorator: ...
def smap(f: Callable[..., Any] | None = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: str) -> Any:
    """`shard_map` over one axis of the current mesh, with axes in the form of `vmap`.

    Args:
      f: a function of blocks. Without it, returns a decorator.
      in_axes: the axis of each argument that is cut: an int, None (not cut), or a tuple with a pytree prefix per
        argument.
      out_axes: the position of the axis in the results: a pytree prefix of them.
      axis_name: the axis of the mesh.

    Returns:
      A function of whole arrays.

    Examples:

      >>> mesh = jax.make_mesh((1,), ("i",))
      >>> with jax.set_mesh(mesh):
      ...     y = jax.smap(lambda x: 2 * x, in_axes=0, out_axes=0, axis_name="i")(jax.reshard(jnp.arange(4), jax.P("i")))
      ...
      >>> y
      Array([0, 2, 4, 6], dtype=int32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)

    def specs(what, axes, types, tree):
        every = prefix_leaves(what, axes, pytree.tree_unflatten(tree, types), f)
        return [axis_spec(what, a, len(t.shape), axis_name, f) for a, t in zip(every, types, strict=True)]

    @functools.wraps(f)
    @api_boundary
    def mapped(*args):
        in_specs = None if in_axes is Infer else functools.partial(specs, "in_axes", in_axes)
        out_specs = functools.partial(specs, "out_axes", out_axes)
        return map_blocks(f, args, in_specs, out_specs, None, {axis_name}, True, (smap, in_axes, out_axes))

    return mapped


def axis_spec(what: str, axis: int | None, rank: int, name: str, f: Callable[..., Any]) -> PartitionSpec:
    """The spec of an array with one axis (None: none) cut along an axis of the mesh."""
    if axis is None:
        return PartitionSpec()
    if type(axis) is not int or not -rank <= axis < rank:
        raise ValueError(
            f"{what} of {function_name(f)}: {axis!r} is not an axis of an array of rank {rank}; write an int in"
            f" range({-rank}, {rank}), or None"
        )
    return PartitionSpec(*[None] * (axis % rank), name)


def map_blocks(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    in_specs: Callable[..., Any] | None,
    out_specs: Callable[..., Any],
    mesh: Any,
    axis_names: Any,
    check_vma: bool,
    specs: Any = None,
) -> Any:
    """Trace a function of blocks, and apply it to whole arrays.

    Args:
      in_specs: ``(types of the leaves of the arguments, their tree) -> a spec for each``; None: the split in the
        arguments' types.
      out_specs: ``(types of the results, their tree) -> a spec for each``.
      specs: a pytree on which alone `in_specs` and `out_specs` depend. The traced function is then kept for further
        calls with arguments of these types. None: it is not kept.
    """
    leaves, tree = pytree.tree_flatten(args)
    if not no_arrays.isdisjoint(map(type, leaves)):
        leaves = [x if hasattr(type(aval_of(x)), "shard") else array_form(x) for x in leaves]
    types = tuple([aval_of(x) for x in leaves])
    known, key = caches.traces.of(f), None
    if specs is not None:
        with_types, structure = pytree.tree_flatten(specs)
        names = axis_names if type(axis_names) is str else frozenset(axis_names)
        options = (structure, tuple(map(type, with_types)), *with_types, mesh, names, bool(check_vma))
        key = (map_blocks, tree, types, options, executors.get(), caches.context())
    try:
        found = None if key is None else known.get(key)
    except TypeError:  # an argument that has no hash: an error that `_traced` reports
        found = key = None
    if found is None:
        found = _traced(f, args, types, tree, in_specs, out_specs, mesh, axis_names, check_vma)
        if key is not None and not any(map(of_a_trace, found.consts)):
            known.keep(key, found)
    out = shard_map_p.bind(*found.consts, *leaves, **found.params)
    return pytree.tree_unflatten(found.tree, out)


class _Traced(NamedTuple):
    """A traced function of blocks, for arguments of given types.

    Attributes:
      consts: the values that it closes over.
      params: those of `shard_map_p`.
      tree: the structure of its results.
    """

    consts: list[Any]
    params: dict[str, Any]
    tree: Any


def _traced(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    types: tuple[Any, ...],
    tree: Any,
    in_specs: Callable[..., Any] | None,
    out_specs: Callable[..., Any],
    mesh: Any,
    axis_names: Any,
    check_vma: bool,
) -> _Traced:
    where = _mesh(mesh)
    manual = _manual(where, axis_names)
    sizes = manual_sizes(where, manual)
    own = tuple(_inferred(f, types, where, manual) if in_specs is None else in_specs(types, tree))
    blocks = []
    for i, (aval, spec) in enumerate(zip(types, own, strict=True)):
        name = functools.partial(_argument, f, args, i)
        if aval.represented or isinstance(spec, HiPspec):
            _check_values("in_specs", aval, spec, where, manual, name, "shard")
            blocks.append(aval.shard(where, frozenset(manual), bool(check_vma), spec))
            continue
        _check_spec("in_specs", spec, len(aval.shape), where, manual, name)
        explicit.check_blocks(aval, spec)
        _check_sums(aval, spec, where, manual, name)
        blocks.append(_block_type(aval, spec, sizes, check_vma, name, where))
    params = dict(mesh=where, manual=manual, check_vma=bool(check_vma))
    in_tree = pytree.tree_structure((args, {}))
    with inside(params), _mesh_inside(where, manual):
        program, consts, out_tree = staging.trace_function(f, in_tree, tuple(blocks))
    explicit.check_collectives(program)
    results = tuple(out_specs(program.out_avals, out_tree))
    for i, (aval, spec) in enumerate(zip(program.out_avals, results, strict=True)):
        name = functools.partial(_result, f, out_tree, i)
        if aval.represented or isinstance(spec, HiPspec):
            _check_values("out_specs", aval, spec, where, manual, name, "unshard")
            if check_vma:
                _check_blocks_of_values(spec, manual, name)
            continue
        _check_spec("out_specs", spec, len(aval.shape), where, manual, name)
        if check_vma:
            _check_equal(aval, spec, manual, name)
    if check_vma:
        with inside(params):
            program = rules.varying_results(program, results)
    params.update(jaxpr=program, in_specs=(PartitionSpec(),) * len(consts) + own, out_specs=results)
    return _Traced(consts, params, out_tree)


# ---- the mesh


def _mesh(mesh: Any) -> Mesh | AbstractMesh:
    if mesh is None:
        mesh = meshes.get_abstract_mesh()
        for concrete in (meshes.get_mesh(), meshes.physical_mesh()):
            if not concrete.empty and (mesh.empty or concrete.shape_tuple == mesh.shape_tuple):
                return concrete
        if mesh.empty:
            raise ValueError(
                public(
                    "shard_map: no mesh was given and none is in force; pass mesh=..., or call it under"
                    " jax.set_mesh(mesh)"
                )
            )
    if not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(f"shard_map: mesh is a Mesh or an AbstractMesh, got {mesh!r} of type {type(mesh)}")
    return mesh


def _manual(mesh: Any, axis_names: Any) -> tuple[str, ...]:
    """The mapped axes, in the order of the mesh."""
    taken = set(meshes.get_abstract_mesh().manual_axes)
    wanted = {axis_names} if isinstance(axis_names, str) else set(axis_names)
    unknown = wanted - set(mesh.axis_names)
    if unknown:
        raise ValueError(
            f"shard_map: axis_names has {sorted(map(str, unknown))}, which the mesh lacks; its axes are {mesh.axis_names}"
        )
    wanted = wanted or set(mesh.axis_names) - taken
    if wanted & taken or not wanted:
        raise ValueError(
            f"shard_map: the axes {sorted(map(str, wanted & taken or taken))} are mapped already by the shard_map around"
            f" this one; of {mesh.axis_names}, name others in axis_names"
        )
    return tuple(n for n in mesh.axis_names if n in wanted)


@contextlib.contextmanager
def _mesh_inside(mesh: Any, manual: Sequence[str]):
    """Context manager: the current mesh has the mapped axes as manual ones."""
    inside = {*meshes.get_abstract_mesh().manual_axes, *manual}
    kinds = {name: AxisType.Manual for name in mesh.axis_names if name in inside}
    with meshes.use_abstract_mesh(mesh.abstract_mesh.update_axis_types(kinds)):
        yield


# ---- specs of pytrees


def prefix_leaves(what: str, prefix: Any, tree: Any, f: Callable[..., Any]) -> list[Any]:
    """The leaf of `prefix` (None is one, too) above each leaf of `tree`."""
    prefix = tuple(prefix) if isinstance(prefix, list) and isinstance(tree, tuple) else prefix
    no_children = lambda x: x is None
    try:
        return pytree.tree_broadcast_leaves(prefix, tree, is_leaf=no_children)
    except (ValueError, TypeError, KeyError):
        errors = pytree.prefix_errors(prefix, tree, is_leaf=no_children)
        if errors:
            raise errors[0](f"{what} of {function_name(f)}") from None
        raise


def _flat_specs(what: str, specs: Any, tree: Any, f: Callable) -> list[PartitionSpec]:
    if what == "in_specs" and isinstance(specs, tuple | list) and len(specs) != len(tree):
        raise ValueError(
            f"shard_map: in_specs has one entry per argument of {function_name(f)}, got {len(specs)} entries for"
            f" {len(tree)} arguments. For one argument, write a tuple of one, or the spec itself."
        )
    found = prefix_leaves(what, specs, tree, f)
    for s in found:
        if s is not None and not isinstance(s, PartitionSpec | HiPspec):
            raise TypeError(
                f"shard_map: {what} of {function_name(f)} holds PartitionSpecs (and None, for what is not cut), got"
                f" {s!r} of type {type(s)}"
            )
    return [PartitionSpec() if s is None else s for s in found]


def _inferred(f: Callable, types: Sequence[Any], mesh: Any, manual: tuple[str, ...]) -> list[PartitionSpec]:
    """The split of the mapped axes according to types. Only types of Explicit axes have it."""
    silent = [n for n in manual if n not in mesh.explicit_axes]
    if silent:
        raise TypeError(
            f"shard_map: the types of the arguments of {function_name(f)} do not state how they are split over the axes"
            f" {silent}, as they do for axes of type Explicit; pass in_specs"
        )
    found = [getattr(aval.split, "spec", PartitionSpec()) for aval in types]
    return [without_axes(spec, frozenset(mesh.axis_names).difference(manual)) for spec in found]


def _argument(f: Callable, args: tuple, index: int) -> str:
    try:
        names = list(signature_of(f).bind(*args).arguments)
    except (TypeError, ValueError):
        names = []
    path = pytree.tree_flatten_with_path(args)[0][index][0]
    position = path[0].idx
    name = names[position] if position < len(names) else f"[{position}]"
    return f"argument {name}{pytree.keystr(path[1:])} of {function_name(f)}"


def _result(f: Callable, tree: Any, index: int) -> str:
    return f"result{pytree.keystr(pytree.leaf_paths(tree)[index])} of {function_name(f)}"


def _check_spec(what: str, spec: PartitionSpec, rank: int, mesh: Any, manual: Sequence[str], name: Callable) -> None:
    names = [*names_in(spec), *spec.unreduced, *spec.reduced]
    if len(spec) > rank:
        raise ValueError(
            f"shard_map: {what} has {spec}, of {len(spec)} entries, for {name()}, of rank {rank}; write at most {rank}"
        )
    for n in names:
        if n not in mesh.axis_names:
            raise ValueError(
                f"shard_map: {what} has {spec} for {name()}, but the mesh has no axis {n!r}; its axes are"
                f" {mesh.axis_names}"
            )
        if n not in manual:
            raise ValueError(
                f"shard_map: {what} has {spec} for {name()}, but only the axes {manual} are mapped. Leave {n!r} out: the"
                " compiler decides about it, or name it in axis_names."
            )
        if names.count(n) > 1:
            raise ValueError(f"shard_map: {what} has {spec} for {name()}, which names {n!r} twice")
        if n in mesh.auto_axes and n not in names_in(spec):
            raise ValueError(
                public(
                    f"shard_map: {what} has {spec} for {name()}, but whole arrays have partial sums over axes of type"
                    f" Explicit only, and {n!r} is Auto; make the mesh with axis_types=(jax.sharding.AxisType.Explicit,"
                    " ...)"
                )
            )


def _check_values(what: str, aval: Any, spec: Any, mesh: Any, manual: Any, name: Callable, method: str) -> None:
    """Check the spec of a value of a library's type."""
    if not aval.represented or not isinstance(spec, HiPspec):
        raise TypeError(
            f"shard_map: {what} has {spec!r} for {name()}, of type {aval}. A value of a library's type has a HiPspec, an array"
            " a PartitionSpec."
        )
    if not hasattr(type(aval), method):
        raise NotImplementedError(
            f"shard_map: {name()} is of type {aval}; for {what}, the class {type(aval).__name__} must define `{method}`"
        )
    lows, specs = aval.lo_ty(), tuple(spec.to_lo())
    if len(specs) != len(lows):
        raise ValueError(
            f"shard_map: {what} has {spec!r} for {name()}, whose `to_lo` returns {len(specs)} specs; {len(lows)} arrays"
            f" represent a value of type {aval}"
        )
    for low, own in zip(lows, specs, strict=True):
        _check_spec(what, own, low.ndim, mesh, manual, name)


def _check_blocks_of_values(spec: HiPspec, manual: Sequence[str], name: Callable) -> None:
    """Raise if results may differ along a mapped axis that no block is cut along: their types do not state it."""
    differing = [n for n in manual if any(n not in names_in(own) for own in spec.to_lo())]
    if differing:
        raise ValueError(
            f"shard_map: out_specs has {spec!r} for {name()}, which states that arrays of it are equal along"
            f" {', '.join(map(repr, differing))}; types of libraries do not state whether values vary. If they are equal, pass"
            " check_vma=False."
        )


def type_of_block(aval: Any, mesh: Any, manual_axes: Any, check_vma: bool, spec: PartitionSpec) -> Any:
    """`ShapedArray.shard`: the type of a block of an array, as libraries compute it in a method `shard`."""
    sizes = manual_sizes(mesh, [n for n in mesh.axis_names if n in manual_axes])
    return _block_type(aval, spec, sizes, check_vma, lambda: f"an array of type {aval}", mesh)


def type_of_whole(aval: Any, mesh: Any, check_vma: bool, spec: PartitionSpec) -> Any:
    """`ShapedArray.unshard`: the type of an array with blocks of a type."""
    return whole_type(aval, spec, mesh, _manual(mesh, ()))


def _check_sums(aval: Any, spec: PartitionSpec, mesh: Any, manual: Sequence[str], name: Callable) -> None:
    """Raise if an argument is to be summed, or to become partial sums, by its spec: that is an exchange, or another value."""
    if not executors.get().devices():
        return  # types of arrays on the host have no splits
    have = PartitionSpec() if getattr(aval, "split", None) is None else aval.split.spec
    have = without_axes(have, frozenset(mesh.axis_names).difference(manual))
    if (have.unreduced, have.reduced, have.unreduced_kind) != (spec.unreduced, spec.reduced, spec.unreduced_kind):
        raise ValueError(
            public(
                f"shard_map: in_specs has {spec} for {name()}, of type {aval.str_short()}. Its partial sums and sums"
                " must be those of the type: leave in_specs out, or change the argument first, with"
                " jax.sharding.reshard(x, spec)"
            )
        )


def _block_type(aval: Any, spec: PartitionSpec, sizes: dict, check_vma: bool, name: Callable, mesh: Any) -> Any:
    if aval.mutable:  # the blocks of a reference are references, too
        return aval.update(inner_aval=_block_type(aval.inner_aval, spec, sizes, check_vma, name, mesh))
    parts = parts_of(spec, len(aval.shape), sizes)
    for i, (n, c) in enumerate(zip(aval.shape, parts, strict=True)):
        if n % c:
            axes = axes_of(spec[i])
            raise ValueError(
                f"shard_map: in_specs has {spec} for {name()}, of shape {aval.shape}: its axis {i}, of size {n}, is to be"
                f" cut along {' and '.join(map(repr, axes))} into {c} parts, which does not divide it. Pad it to"
                f" {math.ceil(n / c) * c}, or cut another axis."
            )
    own = frozenset(names_in(spec)) if check_vma else frozenset()
    return aval.update(
        shape=tuple(n // c for n, c in zip(aval.shape, parts)),
        vma=aval.vma | own,
        sharding=block_split(aval, spec, mesh, frozenset(sizes), check_vma),
    )


def _check_equal(aval: Any, spec: PartitionSpec, manual: Sequence[str], name: Callable) -> None:
    differing = (aval.vma & frozenset(manual)) - frozenset(names_in(spec))
    if differing:
        axes = ", ".join(map(repr, sorted(differing, key=str)))
        raise ValueError(
            f"shard_map: out_specs has {spec} for {name()}, which states that it is equal along {axes}, but by its type it"
            f" varies there. Name {axes} in the spec to put the blocks together, or make them equal by psum, pmax or"
            " all_gather(to='invariant'). If they are equal for a reason that types do not state, pass check_vma=False."
        )
    held = aval.manual_axis_type
    found = (held.unreduced.intersection(manual), held.reduced.intersection(manual), held.unreduced_kind)
    if held.unreduced.isdisjoint(manual):
        found = (*found[:2], None)
    if found != (spec.unreduced, spec.reduced, spec.unreduced_kind):
        raise ValueError(
            f"shard_map: out_specs has {spec} for {name()}, which has the type {aval.short()}. Name its partial sums in the"
            " spec, as P(..., unreduced={...}) or P(..., reduced={...}); or sum them, with psum or psum_scatter; a value that"
            " varies becomes partial sums by lax.pcast(x, axis, to='unreduced')."
        )
