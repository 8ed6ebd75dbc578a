"""Shardings in modules: Shardy's dialect for Shardy, HLO shardings for GSPMD.

Shardy's shardings are over the axes of one mesh. GSPMD partitions the whole of a program that has another sharding,
or a part that was lowered for GSPMD (an exported program).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.core.caches import remembered
from bedrax.parallel.specs import UNCONSTRAINED, PartitionSpec, axes_of
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.lowering import types


@remembered(1024)
def split(mesh: Any, spec: PartitionSpec, rank: int, manual: tuple[str, ...]) -> runtime.HloSharding:
    """The sharding of an array of `rank` with `spec`, inside a part of a module that is manual along some axes."""
    counts, order = [], []
    for entry in [axes_of(e) for e in spec] + [()] * (rank - len(spec)):
        counts.append(int(np.prod([mesh.shape[n] for n in entry], dtype=int)))
        order += entry
    kinds = []
    for kind, names in (
        ("MANUAL", [n for n in mesh.axis_names if n in manual]),
        ("REPLICATED", [n for n in mesh.axis_names if n not in manual and n not in order]),
    ):
        size = int(np.prod([mesh.shape[n] for n in names], dtype=int))
        if names:
            counts.append(size)
            kinds.append(runtime.OpSharding.Type.__members__[kind])
        order += names
    if len(kinds) == 1 and all(c == 1 for c in counts[:-1]):
        return runtime.HloSharding.manual() if manual else runtime.HloSharding.replicate()
    return runtime.HloSharding.iota_tile(
        dims=counts,
        reshape_dims=list(mesh.axis_sizes),
        transpose_perm=[mesh.axis_names.index(n) for n in order],
        subgroup_types=kinds,
    )


def _as_equal(place: Any) -> Any:
    """A place in which partial sums over these axes are annotated as equal along them; see `lowering.partial_sums`."""
    if not getattr(place, "partial", False):
        return place
    return place.update(spec=place.spec.update(unreduced=set(), reduced=set()))


def annotated(point: Any, v: Any, target: str, place: Any, result: Any, free: Any = ()) -> Any:
    """`v` through a custom call for GSPMD, inserted at a point. The partitioner may split the dimensions `free` further."""
    attributes = {
        "call_target_name": types.string(target),
        "api_version": types.i32(1),
        "mhlo.sharding": types.string(str(place)),
        "backend_config": types.string(f"unspecified_dims=[{','.join(map(str, free))}]" if free else ""),
    }
    return types.ir.Operation.create(
        "stablehlo.custom_call", results=[result], operands=[v], attributes=attributes, loc=types.unknown, ip=point
    ).result


def target_of(op: Any) -> str:
    """The target of a custom call; "" for other operations."""
    return types.ir.StringAttr(op.attributes["call_target_name"]).value if op.name == "stablehlo.custom_call" else ""


class Gspmd:
    """Shardings in the form of HLO."""

    shardy = False

    def attribute(self, place: Any, rank: int) -> dict[str, Any]:
        """The attributes of an argument or result of `rank`. `place` is a sharding, or None for replicated."""
        return {"mhlo.sharding": "{replicated}" if place is None else str(_as_equal(place)._to_xla_hlo_sharding(rank))}

    def constrained(self, ctx: Any, v: Any, place: Any) -> Any:
        """A value with a sharding constraint."""
        rank, manual = v.type.rank, ctx.program.manual
        if manual is None or not hasattr(place, "spec"):
            return ctx.with_sharding(v, _as_equal(place)._to_xla_hlo_sharding(rank), place.unconstrained(rank))
        spec = PartitionSpec(*[None if entry is UNCONSTRAINED else entry for entry in place.spec])
        return ctx.with_sharding(v, split(manual.mesh, spec, rank, manual.manual), place.unconstrained(rank))

    def whole(self, ctx: Any, v: Any) -> Any:
        """A value, replicated."""
        return ctx.with_sharding(v, "{replicated}")

    def alike(self, ctx: Any, values: tuple[Any, ...]) -> list[Any]:
        """Values with one common sharding of the partitioner's choice."""
        ctx.program.groups += 1
        return [ctx.with_sharding(v, f"{{unknown shard_as {ctx.program.groups}}}") for v in values]

    def on_one(self, program: Any, position: int | None, results: int) -> dict[Any, Any]:
        """The attributes of an operation on one device for all (None: inside `shard_map`, each device for itself)."""
        one = "{manual}" if position is None else f"{{maximal device={position}}}"
        return {"mhlo.sharding": types.string(one if results < 2 else f"{{{', '.join([one] * results)}}}")}


_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _axis_names(axes: Sequence[Any]) -> dict[Any, str]:
    """The names of mesh axes in quotes. A name that is not an identifier is replaced by its position."""
    plain = {a for a in axes if isinstance(a, str) and _PLAIN.fullmatch(a)}
    names = {a: a for a in plain}
    for i, a in enumerate(axes):
        if a not in plain:
            names[a] = next(name for k in itertools.count() if (name := f"axis_{i}" + "_" * k) not in plain)
    return {a: f'"{name}"' for a, name in names.items()}


class Shardy:
    """Shardings over the axes of a mesh."""

    shardy = True

    def __init__(self, program: Any, axes: tuple[tuple[Any, int], ...]) -> None:
        self.maximal: set[int] = set()
        self._names = _axis_names([name for name, _ in axes])
        self._mesh(program, "mesh", "[" + ", ".join(f"{self.axis(name)}={size}" for name, size in axes) + "]")

    def axis(self, name: Any) -> str:
        """The name of a mesh axis as MLIR writes it, in quotes."""
        return self._names[name]

    @staticmethod
    def _mesh(program: Any, symbol: str, text: str) -> None:
        attributes = {"sym_name": types.string(symbol), "mesh": types.parse(f"#sdy.mesh<{text}>")}
        point = types.ir.InsertionPoint.at_block_begin(program.body)
        types.ir.Operation.create("sdy.mesh", attributes=attributes, loc=types.unknown, ip=point)

    def _text(self, place: Any, rank: int) -> str:
        spec = () if place is None else place.spec
        dims = []
        # For a type over a mesh with axes of both kinds, the partitioner decides the automatic axes.
        some = place is not None and place.assignment is None and place.mesh.explicit_axes and place.mesh.auto_axes
        for entry in (*spec, *(None,) * (rank - len(spec))):
            names = [self.axis(a) for a in axes_of(entry)] if entry is not UNCONSTRAINED else []
            dims.append("{" + ", ".join([*names, *["?"] * bool(some or entry is UNCONSTRAINED)]) + "}")
        # Partial sums are not values along their axes, so the partitioner must not split it; see `lowering.partial_sums`.
        sums = () if place is None or not place.partial else place.spec.unreduced.difference(place.mesh.manual_axes)
        fixed = f", replicated={{{', '.join(map(self.axis, sorted(sums, key=str)))}}}" if sums else ""
        return f"#sdy.sharding<@mesh, [{', '.join(dims)}]{fixed}>"

    def attribute(self, place: Any, rank: int) -> dict[str, Any]:
        return {"sdy.sharding": types.parse(self._text(place, rank))}

    def constrained(self, ctx: Any, v: Any, place: Any) -> Any:
        return ctx.emit("sdy.sharding_constraint", (v,), v.type, sharding=types.parse(self._text(place, v.type.rank)))

    def whole(self, ctx: Any, v: Any) -> Any:
        return self.constrained(ctx, v, None)

    def alike(self, ctx: Any, values: tuple[Any, ...]) -> list[Any]:
        ctx.program.groups += 1
        for v in values:
            ctx.emit("sdy.sharding_group", (v,), [], group_id=ctx.i64(ctx.program.groups))
        return list(values)

    def on_one(self, program: Any, position: int | None, results: int) -> dict[Any, Any]:
        if position is None:
            return {}
        symbol = f"maximal_mesh_{position}"
        if position not in self.maximal:
            self.maximal.add(position)
            self._mesh(program, symbol, f"[], device_ids=[{position}]")
        each = ", ".join([f"<@{symbol}, []>"] * max(results, 1))
        return {"sdy.sharding": types.parse(f"#sdy.sharding_per_value<[{each}]>")}
