"""The parts of arrays in the processes of a run: from the part of each process to the whole array, and back.

Both operations are at the border of compiled programs, whose arrays are whole. A program that has them is evaluated
equation by equation (`primitives.crosses_processes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax.autodiff.tables import linear
from bedrax.batching.tables import batch_rules
from bedrax.core import executors
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.caches import remembered
from bedrax.core.tracing import Primitive
from bedrax.lax.tables import decompositions
from bedrax.parallel.meshes import Mesh
from bedrax.parallel.primitives import own_part_p, parts_of, whole_array_p
from bedrax.parallel.specs import PartitionSpec


@remembered(64)
def own_mesh(mesh: Mesh) -> Mesh:
    """The devices of this process, in the order of a mesh of one axis. They may stand apart in it."""
    devices = np.empty(len(mesh.local_devices), object)
    devices[:] = mesh.local_devices
    return Mesh(devices, mesh.axis_names, mesh.axis_types)


def _scaled(aval: ShapedArray, spec: PartitionSpec, old: Mesh, new: Mesh) -> ShapedArray:
    parts = [parts_of(spec, len(aval.shape), mesh.shape) for mesh in (old, new)]
    return aval.update(shape=tuple(n // a * b for n, a, b in zip(aval.shape, *parts, strict=True)), sharding=None)


def _moved(x: Any, spec: PartitionSpec, old: Mesh, new: Mesh) -> Any:
    return executors.get().regrouped(x, _scaled(aval_of(x), spec, old, new).shape, spec, old, new)


whole_array_p.abstract(lambda x, *, mesh, spec: _scaled(x, spec, own_mesh(mesh), mesh))
own_part_p.abstract(lambda x, *, mesh, spec: _scaled(x, spec, mesh, own_mesh(mesh)))
whole_array_p.def_impl(lambda x, *, mesh, spec: _moved(x, spec, own_mesh(mesh), mesh))
own_part_p.def_impl(lambda x, *, mesh, spec: _moved(x, spec, mesh, own_mesh(mesh)))


def _batch(prim: Primitive) -> Callable[..., Any]:
    def rule(axis, args, dims, *, mesh, spec):
        (x,), (d,) = args, dims
        entries = [*spec, *[None] * (d - len(spec))]
        entries.insert(d, None)
        return prim.bind(x, mesh=mesh, spec=PartitionSpec(*entries)), d

    return rule


def _inside(x, **_):
    raise NotImplementedError(
        "pmap over devices of several processes takes and returns the part of each process, and the arrays of a compiled"
        " program are whole. Call it outside of scan, while_loop, cond and lower(), or use shard_map on whole arrays"
    )


for _prim, _inverse in ((whole_array_p, own_part_p), (own_part_p, whole_array_p)):
    linear(_prim, lambda ct, x, inverse=_inverse, **params: [inverse.bind(ct, **params)])
    batch_rules.add(_prim, _batch(_prim))
    decompositions.add(_prim, _inside)


def whole_arrays(values: Sequence[Any], mesh: Mesh, specs: Sequence[PartitionSpec]) -> list[Any]:
    """The whole arrays, given this process's part of each."""
    return [whole_array_p.bind(x, mesh=mesh, spec=s) for x, s in zip(values, specs, strict=True)]


def own_parts(values: Sequence[Any], mesh: Mesh, specs: Sequence[PartitionSpec]) -> list[Any]:
    """This process's part of each whole array."""
    return [own_part_p.bind(x, mesh=mesh, spec=s) for x, s in zip(values, specs, strict=True)]
