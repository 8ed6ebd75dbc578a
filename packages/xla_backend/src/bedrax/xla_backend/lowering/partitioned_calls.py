"""`custom_partitioning` over several devices: a custom call with callbacks for XLA's partitioner.

The partitioner calls back by the name of the custom call, with the key of one `Call` as its configuration. `Call`
returns the shardings of the results (GSPMD; Shardy has a rule), and the program of one device, as a module.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import numpy as np

from bedrax import pytree
from bedrax.core import staging
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.lax.primitives.calls import custom_partitioning_p
from bedrax.parallel.mapping import prefix_leaves
from bedrax.parallel.meshes import AxisType, use_abstract_mesh
from bedrax.parallel.primitives import inside
from bedrax.parallel.shardy_rules import parse_rule
from bedrax.xla_backend import sharding
from bedrax.xla_backend.door import mlir, runtime
from bedrax.xla_backend.lowering import types
from bedrax.xla_backend.lowering.build import Builder
from bedrax.xla_backend.lowering.program import Program, add_main
from bedrax.xla_backend.lowering.shard_map import Manual
from bedrax.xla_backend.tables import lowering_rules

_TARGET = "BedraxPartitioned"


class Call:
    """One call in a program, for the partitioner. The params are those of the equation."""

    def __init__(self, ctx: Any, params: dict[str, Any]) -> None:
        program = ctx.program
        self.mesh: Any = program.mesh
        self.devices: Any = program.devices
        self.platform: Any = program.platform
        self.params: dict[str, Any] = params
        self.in_avals: list[Any] = list(ctx.avals_in)
        self.out_avals: list[Any] = list(ctx.avals_out)

    def _call_user(self, what: str, *trees: Any) -> Any:
        return self.params[what](*self.params["static_args"], self.mesh, *trees)

    def _shapes(self, tree: Any, avals: list, places: list | None = None) -> Any:
        """A tree of types with shardings, as users receive it."""
        found = [
            ShapeDtypeStruct(
                a.shape, a.dtype, sharding=None if places is None else self._place(places[i], len(a.shape))
            )
            for i, a in enumerate(avals)
        ]
        return pytree.tree_unflatten(tree, found)

    def _place(self, hlo: Any, rank: int) -> Any:
        mesh = self.mesh if self.params["decode_shardings"] else None
        place = sharding.from_hlo(hlo, runtime.DeviceList(self.devices), mesh, rank)
        if isinstance(place, sharding.NamedSharding):
            place = place.update(spec=sharding.PartitionSpec(*place.spec, *(None,) * (rank - len(place.spec))))
        return place

    def _of_results(self, hlo: Any) -> list:
        return hlo.tuple_elements() if len(self.out_avals) > 1 else [hlo]

    def _hlo(self, places: Any, tree: Any, avals: list) -> list:
        """The result of a user's function (a tree of shardings, or a prefix of one) as XLA's shardings."""
        full = pytree.tree_unflatten(tree, avals)
        flat = prefix_leaves("shardings of custom_partitioning", places, full, self.params["partition"])
        return [
            runtime.HloSharding.replicate() if p is None else p._to_xla_hlo_sharding(len(a.shape))
            for p, a in zip(flat, avals, strict=True)
        ]

    def _result(self, places: Any, shape: Any) -> Any:
        found = self._hlo(places, self.params["out_tree"], self.out_avals)
        return runtime.HloSharding.tuple_sharding(shape, found) if len(found) > 1 else found[0]

    def infer(self, operands: list[Any], shape: Any) -> Any:
        """The shardings of the results, from those of the operands."""
        arguments = self._shapes(self.params["in_tree"], self.in_avals, operands)
        wanted = self._shapes(self.params["out_tree"], self.out_avals)
        return self._result(self._call_user("infer_sharding_from_operands", arguments, wanted), shape)

    def propagate(self, hlo: Any, shape: Any) -> Any:
        """The shardings of the results, from the sharding that a consumer of them needs."""
        if self.params["propagate_user_sharding"] is None:
            return hlo
        wanted = self._shapes(self.params["out_tree"], self.out_avals, self._of_results(hlo))
        return self._result(self._call_user("propagate_user_sharding", wanted), shape)

    def partition(self, operands: list[Any], shape: Any, result: Any) -> tuple[Any, ...]:
        """The program of one device, as a module, and its shardings of operands and results."""
        in_tree, out_tree = self.params["in_tree"], self.params["out_tree"]
        arguments = self._shapes(in_tree, self.in_avals, operands)
        wanted = self._shapes(out_tree, self.out_avals, self._of_results(result))
        mesh, fun, of_results, of_operands = self._call_user("partition", arguments, wanted)
        hlo_in = self._hlo(of_operands, in_tree, self.in_avals)
        hlo_out = self._hlo(of_results, out_tree, self.out_avals)
        blocks = [_block(a, h) for a, h in zip(self.in_avals, hlo_in, strict=True)]
        manual = tuple(mesh.axis_names)
        kinds = dict.fromkeys(manual, AxisType.Manual)
        with (
            inside(dict(mesh=mesh, manual=manual, check_vma=False)),
            use_abstract_mesh(mesh.abstract_mesh.update_axis_types(kinds)),
        ):
            flat = lambda *xs: pytree.tree_flatten(fun(*pytree.tree_unflatten(in_tree, xs)))
            program, tree = staging.trace_to_jaxpr(flat, blocks)
            got = [(a.shape, a.dtype) for a in program.out_avals]
            expected = [(b.shape, b.dtype) for b in map(_block, self.out_avals, hlo_out)]
            if tree != out_tree or got != expected:
                raise ValueError(
                    f"custom_partitioning: the function that `partition` returned gives {got} as {tree} for one device;"
                    f" its result shardings require {expected} as {out_tree}"
                )
            module = self._module(program, mesh, manual)
        return mlir.bytecode(module), hlo_in, self._result(of_results, shape)

    def _module(self, jaxpr: Any, mesh: Any, manual: tuple) -> Any:
        program = Program("partitioned", self.platform, len(self.devices), devices=self.devices)

        def begin(block, values):
            program.manual = Manual(mesh, manual, _numbers(Builder(block), mesh))
            return values

        count = len(jaxpr.invars)
        add_main(program, jaxpr, range(count), [{} for _ in range(count)], [{} for _ in jaxpr.outvars], begin=begin)
        if program.host_callbacks or program.keepalives:
            raise NotImplementedError("custom_partitioning: what `partition` returns calls back into Python; it cannot")
        return program.module


def _block(aval: Any, hlo: Any) -> Any:
    """The type of one device's shard of an array."""
    parts = sharding.tile_counts(hlo, len(aval.shape)) if not hlo.is_replicated() else (1,) * len(aval.shape)
    return aval.update(shape=tuple(-(-n // p) for n, p in zip(aval.shape, parts)), sharding=None, weak_type=False)


def _numbers(b: Builder, mesh: Any) -> dict:
    """This device's index along each axis."""
    i32 = np.dtype(np.int32)
    t = types.tensor_type((), i32)
    rest = b.convert(b.emit("stablehlo.partition_id", (), types.tensor_type((), np.dtype(np.uint32))), i32)
    numbers = {}
    for name in reversed(mesh.axis_names):
        size = b.constant(mesh.shape[name], i32)
        numbers[name] = b.emit("stablehlo.remainder", (rest, size), t)
        rest = b.emit("stablehlo.divide", (rest, size), t)
    return numbers


_calls: weakref.WeakValueDictionary[bytes, Call] = weakref.WeakValueDictionary()  # executables keep them alive
_keys = itertools.count()

runtime.register_custom_call_partitioner(
    _TARGET,
    lambda hlo, shape, key: _calls[key].propagate(hlo, shape),
    lambda shapes, operands, shape, result, key: _calls[key].partition(operands, shape, result),
    lambda shapes, operands, shape, key: _calls[key].infer(operands, shape),
    can_side_effecting_have_replicated_sharding=True,
)


@lowering_rules.rule(custom_partitioning_p)
def _partitioned(ctx, *operands, jaxpr, **params):
    program = ctx.program
    manual = program.manual
    if program.num_partitions == 1 or (manual is not None and not manual.free):
        return ctx.inline_jaxpr(jaxpr, *operands)
    if manual is not None:
        raise NotImplementedError(
            "custom_partitioning: the compiler does not call the partitioning functions inside a shard_map that leaves axes to it;"
            " map all axes of the mesh, or none"
        )
    keys = [str(a) for a in (*ctx.avals_in, *ctx.avals_out) if not isinstance(a.dtype, np.dtype)]
    if keys:
        raise NotImplementedError(
            f"custom_partitioning: it takes and returns arrays of numbers, not {keys}; use key_data"
        )
    attributes = {}
    if program.partitioner.shardy:
        attributes["sdy.sharding_rule"] = types.parse(_rule(ctx, operands, **params))
    elif params["infer_sharding_from_operands"] is None:
        raise ValueError("custom_partitioning: GSPMD needs infer_sharding_from_operands; give it to def_partition")
    call = Call(ctx, params)
    key = str(next(_keys))
    _calls[key.encode()] = call
    ctx.keep_alive(call)
    return ctx.emit(
        "stablehlo.custom_call",
        operands,
        call_target_name=_TARGET,
        api_version=ctx.i32(2),
        backend_config=types.string(key),
        **attributes,
    )


def _rule(ctx, operands, *, sharding_rule, static_args, **_) -> str:
    if callable(sharding_rule):
        results = [types.type_of(a) for a in ctx.avals_out]
        sharding_rule = sharding_rule(*static_args, ctx.program.mesh, [v.type for v in operands], results)
    if isinstance(sharding_rule, str):
        sharding_rule = parse_rule(sharding_rule)
    if sharding_rule is None:
        raise ValueError("custom_partitioning: Shardy needs sharding_rule; give it to def_partition")
    return sharding_rule.text([a.shape for a in ctx.avals_in], [a.shape for a in ctx.avals_out])
