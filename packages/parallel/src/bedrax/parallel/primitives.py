"""`shard_map_p`: a program that every device of a mesh runs on its blocks of the arguments.

Its decomposition defines its results: the arguments are cut into blocks, the program is mapped over the named axes of
the mesh by `vmap`, and the results are concatenated. NumPy and TensorFlow evaluate this; a backend with devices has its
own rule.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from bedrax.batching.tables import AxisData, to_front
from bedrax.batching.trace import batch_flat
from bedrax.core import executors, tracing
from bedrax.core.array import Array
from bedrax.core.arrays_of_values import arrays_of, values_of
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.dead_code import dce_for, dead_code_rules, kept
from bedrax.core.facts import cached
from bedrax.core.ir import Eqn, Jaxpr
from bedrax.core.jitting import jit_p
from bedrax.core.tables import (
    Use,
    device_rules,
    families_on_bases,
    print_rules,
    programs,
    represent_rules,
    varying_rules,
)
from bedrax.core.tracing import Primitive
from bedrax.lax import (
    concatenate,
    expand_dims,
    full_like,
    index_in_dim,
    reduce_max,
    reduce_min,
    reduce_sum,
    reshape,
    squeeze,
    transpose,
)
from bedrax.lax.element_types import run_on_bases
from bedrax.lax.tables import decompositions
from bedrax.parallel.meshes import AbstractMesh, AxisType, Mesh
from bedrax.parallel.specs import HiPspec, PartitionSpec, UnreducedKind, axes_of
from bedrax.parallel.sums import split_over, without_axes

families_on_bases.add("shard_map")
families_on_bases.add("process_parts")

# params: jaxpr (on blocks), mesh, in_specs, out_specs (a `PartitionSpec` per operand and result), manual (the mapped
# axes of the mesh, in its order), check_vma (whether types have the axes over which values vary)
shard_map_p: Final = Primitive("shard_map", "shard_map", multiple_results=True)


# Converts between the part of an array in each process of a run and the whole array: `bedrax.parallel.process_parts`.
# params: mesh (of one axis, of devices of several processes), spec (of the whole array)
whole_array_p: Final = Primitive("whole_array", "process_parts")
own_part_p: Final = Primitive("own_part", "process_parts")


@cached
def crosses_processes(program: Jaxpr) -> bool:
    """Whether a program has these operations, itself or in the jitted functions that it calls."""
    return any(
        eqn.primitive.family == "process_parts" or (eqn.primitive is jit_p and crosses_processes(eqn.params["jaxpr"]))
        for eqn in program.eqns
    )


def manual_sizes(mesh: Any, manual: Sequence[str]) -> dict[str, int]:
    """The sizes of some axes of a mesh, by name."""
    return {n: mesh.shape[n] for n in manual}


@contextlib.contextmanager
def inside(params: dict[str, Any]) -> Iterator[None]:
    """Context manager for the trace of programs on blocks, with the mapped axes in scope."""
    with tracing.extend_axes(manual_sizes(params["mesh"], params["manual"]), varying=params["check_vma"]):
        yield


def names_in(spec: PartitionSpec) -> list[str]:
    """The axes in a spec that split a dimension."""
    return [n for entry in spec for n in axes_of(entry)]


def parts_of(spec: PartitionSpec, rank: int, sizes: dict[Any, Any]) -> list[int]:
    """The number of parts of each dimension of an array of `rank` with a spec."""
    counts = [math.prod(sizes[n] for n in axes_of(entry)) for entry in spec]
    return counts + [1] * (rank - len(counts))


def whole_type(aval: ShapedArray, spec: PartitionSpec, mesh: Any, manual: Sequence[str]) -> ShapedArray:
    """The type of an array with blocks of type `aval`."""
    parts = parts_of(spec, len(aval.shape), manual_sizes(mesh, manual))
    return aval.update(
        shape=tuple(n * c for n, c in zip(aval.shape, parts)),
        vma=aval.vma - frozenset(manual),
        sharding=_whole_split(aval, spec, mesh, frozenset(manual)),
    )


def _whole_split(aval: ShapedArray, spec: PartitionSpec, mesh: Any, manual: frozenset[Any]) -> Any:
    """The split in the type of an array with blocks of type `aval`: over the explicit axes of the mesh around.

    Types of arrays on the host tell nothing.
    """
    if not mesh.explicit_axes or not executors.get().devices():
        return None
    inner = PartitionSpec() if aval.split is None else without_axes(aval.split.spec, manual)
    outer = without_axes(spec, frozenset(mesh.axis_names) - frozenset(mesh.explicit_axes))
    entries = [
        (*axes_of(a), *axes_of(b)) for a, b, _ in itertools.zip_longest(outer, inner, aval.shape, fillvalue=None)
    ]
    unreduced, kind = outer.unreduced | inner.unreduced, outer.unreduced_kind or inner.unreduced_kind
    both = PartitionSpec(*entries, unreduced=unreduced, reduced=outer.reduced | inner.reduced, unreduced_kind=kind)
    return split_over(mesh, both)


def block_split(aval: ShapedArray, spec: PartitionSpec, mesh: Any, manual: frozenset[Any], typed: bool) -> Any:
    """The split in the type of a block: over the explicit axes that are not mapped, with the partial sums of a spec."""
    types = tuple(AxisType.Manual if n in manual else t for n, t in zip(mesh.axis_names, mesh.axis_types, strict=True))
    kept = PartitionSpec() if aval.split is None else without_axes(aval.split.spec, manual)
    sums = without_axes(spec, frozenset(mesh.axis_names) - manual) if typed else PartitionSpec()
    both = PartitionSpec(
        *kept,
        *[None] * (len(aval.shape) - len(kept)),
        unreduced=kept.unreduced | sums.unreduced,
        reduced=kept.reduced | sums.reduced,
        unreduced_kind=kept.unreduced_kind or sums.unreduced_kind,
    )
    return split_over(mesh.abstract_mesh.update(axis_types=types), both)


@shard_map_p.abstract
def _types(*avals, jaxpr, mesh, in_specs, out_specs, manual, check_vma):
    if len(avals) != len(jaxpr.invars):
        raise TypeError(f"shard_map: {len(avals)} operands for a program that takes {len(jaxpr.invars)} arguments")
    return [
        a.unshard(mesh, check_vma, s) if a.represented else whole_type(a, s, mesh, manual)
        for a, s in zip(jaxpr.out_avals, out_specs, strict=True)
    ]


@varying_rules.rule(shard_map_p)
def _varying(axes, params):
    own = frozenset(params["manual"])
    return None, [tracing.varying_axes(a) - own for a in params["jaxpr"].out_avals]


@programs.rule(shard_map_p)
def _programs(params):
    # Its types are those of blocks: the relation of operands and arguments is not declared.
    return [Use(params["jaxpr"], axes=tuple(manual_sizes(params["mesh"], params["manual"]).items()))]


class OnMesh(NamedTuple):
    """The place of a program that all devices of a mesh run."""

    mesh: Any

    @property
    def num_devices(self) -> Any:
        return self.mesh.size

    @property
    def assignment(self) -> tuple[Any, ...] | None:
        return self.mesh._flat_devices_tuple if isinstance(self.mesh, Mesh) else None


device_rules.add(shard_map_p, lambda params: (OnMesh(params["mesh"]),))
print_rules.add(shard_map_p, lambda params: {**params, "mesh": params["mesh"].abstract_mesh})


@dead_code_rules.rule(shard_map_p)
def _dead_code(eqn: Eqn, used):
    params = eqn.params
    with inside(params):
        smaller, used_in = dce_for(params["jaxpr"], tuple(used))
    params = {
        **params,
        "jaxpr": smaller,
        "in_specs": tuple(kept(params["in_specs"], used_in)),
        "out_specs": tuple(kept(params["out_specs"], used)),
    }
    invars, outvars = kept(eqn.invars, used_in), kept(eqn.outvars, used)
    return list(used_in), Eqn(eqn.primitive, invars, outvars, params, smaller.effects, eqn.source_info)


# ---- values of libraries' types


@represent_rules.rule(shard_map_p)
def _on_arrays(*values, jaxpr, in_specs, out_specs, **params):
    from bedrax.core import represented  # only programs with such values need it

    with inside(params):
        program = represented.on_arrays(jaxpr)
    specs = {"in_specs": specs_of_arrays(in_specs), "out_specs": specs_of_arrays(out_specs)}
    arrays = arrays_of(jaxpr.in_avals, values)
    return values_of(jaxpr.out_avals, shard_map_p.bind(*arrays, jaxpr=program, **specs, **params))


def specs_of_arrays(specs: Sequence[Any]) -> tuple[PartitionSpec, ...]:
    """The spec of each array that represents values."""
    return tuple([low for spec in specs for low in (spec.to_lo() if isinstance(spec, HiPspec) else (spec,))])


# ---- the decomposition


def _cut(x: Any, spec: PartitionSpec, manual: Sequence[str], sizes: dict) -> Any:
    """All blocks of `x`: the axes of the mesh in its spec come first, in the order of `manual`."""
    shape, names, places = [], [], {}
    entries = [axes_of(entry) for entry in spec]
    for n, own in zip(aval_of(x).shape, entries + [()] * (len(aval_of(x).shape) - len(entries))):
        for name in own:
            places[name] = len(shape)
            shape.append(sizes[name])
        names.append(len(shape))
        shape.append(n // math.prod(sizes[a] for a in own))
    return transpose(reshape(x, shape), [*(places[n] for n in manual if n in places), *names])


def _put_together(x: Any, spec: PartitionSpec, manual: Sequence[str], sizes: dict) -> Any:
    """The array for which `_cut` returns the blocks `x`."""
    order = [n for n in manual if n in names_in(spec)]
    count = len(order)
    block = aval_of(x).shape[count:]
    entries = [axes_of(entry) for entry in spec]
    permutation = []
    for i, own in enumerate(entries + [()] * (len(block) - len(entries))):
        permutation += [*(order.index(n) for n in own), count + i]
    parts = parts_of(spec, len(block), sizes)
    return reshape(transpose(x, permutation), [n * c for n, c in zip(block, parts)])


def _parts_first(spec: PartitionSpec) -> PartitionSpec:
    """The spec of the parts of an array, stacked along a new leading axis; the spec itself if there are none."""
    return PartitionSpec(tuple(sorted(spec.unreduced, key=str)), *spec) if spec.unreduced else spec


def _cut_parts(x: Any, spec: PartitionSpec, manual: Sequence[str], sizes: dict) -> Any:
    """All blocks of `x`. Partial sums are `x` itself and zeros; the parts of a maximum or minimum are `x` each."""
    if not spec.unreduced:
        return _cut(x, spec, manual, sizes)
    rest = math.prod(sizes[n] for n in spec.unreduced) - 1
    first = reshape(x, (1, *aval_of(x).shape))
    others = full_like(first, 0) if spec.unreduced_kind is UnreducedKind.sum else first
    whole = _parts_first(spec)
    blocks = _cut(concatenate([first, *[others] * rest], 0), whole, manual, sizes)
    return squeeze(blocks, (len(names_in(whole)),))


def _put_parts(x: Any, spec: PartitionSpec, manual: Sequence[str], sizes: dict) -> Any:
    """The array for which `_cut_parts` returns blocks of this combination."""
    if not spec.unreduced:
        return _put_together(x, spec, manual, sizes)
    whole = _parts_first(spec)
    parts = _put_together(expand_dims(x, (len(names_in(whole)),)), whole, manual, sizes)
    return _COMBINE[spec.unreduced_kind](parts, (0,))


_COMBINE = {UnreducedKind.sum: reduce_sum, UnreducedKind.max: reduce_max, UnreducedKind.min: reduce_min}


@decompositions.rule(shard_map_p)
def in_blocks(
    *args: Array,
    jaxpr: Jaxpr,
    mesh: AbstractMesh | Mesh,
    in_specs: tuple[PartitionSpec, ...],
    out_specs: tuple[PartitionSpec, ...],
    manual: tuple[str, ...],
    check_vma: bool,
) -> list[Array]:
    """The results, by `vmap` over the axes of the mesh.

    For a result that is equal along an axis according to the specs, the first block along it is used. An argument that is
    partial sums is the first part, and the others are zero; the parts of a result are summed.
    """
    sizes = manual_sizes(mesh, manual)
    values = [_cut_parts(x, s, manual, sizes) for x, s in zip(args, in_specs, strict=True)]
    named_in, named_out = ([set(names_in(s)) | s.unreduced for s in specs] for specs in (in_specs, out_specs))

    def mapped(level: int, xs: Sequence[Any]) -> list:
        if level == len(manual):
            return run_on_bases(jaxpr, *xs)
        name = manual[level]
        size = sizes[name]
        dims = [0 if name in own else None for own in named_in]
        outs, found = batch_flat(lambda *ys: mapped(level + 1, ys), AxisData(name, size), xs, dims)
        return [
            to_front(x, d, size) if name in own else x if d is None else index_in_dim(x, 0, d, keepdims=False)
            for x, d, own in zip(outs, found, named_out, strict=True)
        ]

    return [_put_parts(x, s, manual, sizes) for x, s in zip(mapped(0, values), out_specs, strict=True)]
