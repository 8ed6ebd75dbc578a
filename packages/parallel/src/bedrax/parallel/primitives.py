"""`shard_map_p`: a program that every device of a mesh runs on its blocks of the arguments.

Its decomposition defines its results: the arguments are cut into blocks, the program is mapped over the named axes of
the
mesh by `vmap`, and the results are concatenated. NumPy and TensorFlow evaluate this; a backend with devices has its own
rule.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from bedrax.batching.tables import AxisData, to_front
from bedrax.batching.trace import batch_flat
from bedrax.core import tracing
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.dead_code import dce_for, dead_code_rules, kept
from bedrax.core.ir import Eqn, Jaxpr
from bedrax.core.tables import Use, device_rules, families_on_bases, print_rules, programs, varying_rules
from bedrax.core.tracing import Primitive
from bedrax.lax import index_in_dim, reshape, transpose
from bedrax.lax.element_types import run_on_bases
from bedrax.lax.tables import decompositions
from bedrax.parallel.meshes import AbstractMesh, Mesh
from bedrax.parallel.specs import PartitionSpec, axes_of

families_on_bases.add("shard_map")

# params: jaxpr (on blocks), mesh, in_specs, out_specs (a `PartitionSpec` per operand and result), manual (the mapped
# axes of the mesh, in its order), check_vma (whether types have the axes over which values vary)
shard_map_p: Final = Primitive("shard_map", "shard_map", multiple_results=True)


def manual_sizes(mesh: Any, manual: Sequence[str]) -> dict[str, int]:
    """The sizes of some axes of a mesh, by name."""
    return {n: mesh.shape[n] for n in manual}


@contextlib.contextmanager
def inside(params: dict[str, Any]) -> Iterator[None]:
    """Context manager for the trace of programs on blocks, with the mapped axes in scope."""
    with tracing.extend_axes(manual_sizes(params["mesh"], params["manual"]), varying=params["check_vma"]):
        yield


def names_in(spec: PartitionSpec) -> list[str]:
    """The axes in a spec."""
    return [n for entry in spec for n in axes_of(entry)]


def parts_of(spec: PartitionSpec, rank: int, sizes: dict[Any, Any]) -> list[int]:
    """The number of parts of each dimension of an array of `rank` with a spec."""
    counts = [math.prod(sizes[n] for n in axes_of(entry)) for entry in spec]
    return counts + [1] * (rank - len(counts))


def whole_type(aval: ShapedArray, spec: PartitionSpec, mesh: Any, manual: Sequence[str]) -> ShapedArray:
    """The type of an array with blocks of type `aval`."""
    parts = parts_of(spec, len(aval.shape), manual_sizes(mesh, manual))
    return aval.update(shape=tuple(n * c for n, c in zip(aval.shape, parts)), vma=aval.vma - frozenset(manual))


@shard_map_p.abstract
def _types(*avals, jaxpr, mesh, in_specs, out_specs, manual, check_vma):
    if len(avals) != len(jaxpr.invars):
        raise TypeError(f"shard_map: {len(avals)} operands for a program that takes {len(jaxpr.invars)} arguments")
    return [whole_type(a, s, mesh, manual) for a, s in zip(jaxpr.out_avals, out_specs, strict=True)]


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

    For a result that is equal along an axis according to the specs, the first block along it is used.
    """
    sizes = manual_sizes(mesh, manual)
    values = [_cut(x, s, manual, sizes) for x, s in zip(args, in_specs, strict=True)]
    named_in, named_out = ([set(names_in(s)) for s in specs] for specs in (in_specs, out_specs))

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

    return [_put_together(x, s, manual, sizes) for x, s in zip(mapped(0, values), out_specs, strict=True)]
