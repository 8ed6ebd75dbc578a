"""Exported programs that were written for Shardy, inside programs that GSPMD partitions.

GSPMD partitions a program that calls exported ones: their meshes may have different axes. The proposals of a program
for its values are dropped; its caller sets the split of its arguments and results; its constraints are translated,
and so are its computations on blocks (`shard_map`).
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from bedrax.parallel.meshes import AbstractMesh, AxisType
from bedrax.parallel.specs import PartitionSpec
from bedrax.xla_backend.lowering import types
from bedrax.xla_backend.lowering.modules import operations
from bedrax.xla_backend.lowering.partitioner import annotated, split

_SHARDING = re.compile(r"<@(\w+), \[((?:\{[^}]*\}(?:, )?)*)\]([^>]*)>")
_DIMS = re.compile(r"\{([^}]*)\}")
_NAMES = re.compile(r'"((?:[^"\\]|\\.)*)"')
_AXES_OF_MESH = re.compile(r"#stablehlo\.replica_group_mesh_axes<mesh = @(\w+), axes = (.*)>$")
_NOTHING = PartitionSpec()


def for_gspmd(module: Any) -> None:
    """Translate the shardings of a module from Shardy's to HLO's form, except for proposals.

    Raises:
      NotImplementedError: it has operations of Shardy's without a form in HLO, or its mesh has an order of devices.
    """
    if any(op.name.startswith("sdy.") or "sdy.sharding" in op.attributes for op in operations(module)):
        _Translation(module).start()


class _Translation:
    """The translation of one module in place: each function becomes several, one for each set of mapped axes at its
    calls."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.meshes: dict[str, AbstractMesh] = {}
        self.functions: dict[str, Any] = {}
        self.translated: dict[tuple[str, frozenset[Any]], str] = {}

    def start(self) -> None:
        for view in list(self.module.body.operations):
            op = view.operation
            if op.name == "sdy.mesh":
                self.meshes[_text_of(op, "sym_name")] = _mesh(str(op.attributes["mesh"]))
                op.erase()
            elif op.name == "func.func":
                self.functions[_text_of(op, "sym_name")] = op
        main = self.function("main", ())
        for op in self.functions.values():
            op.erase()
        for op in self.module.body.operations:
            if _text_of(op, "sym_name") == main:
                op.attributes["sym_name"] = types.string("main")

    def function(self, symbol: str, manual: tuple[str, ...]) -> str:
        """The name of the translation of a function for calls with the mapped axes `manual`."""
        key = symbol, frozenset(manual)
        if key not in self.translated:
            name = self.translated[key] = f"{symbol}_{len(self.translated)}_for_gspmd"
            copy = self.functions[symbol].clone(self._end())
            copy.attributes["sym_name"] = types.string(name)
            _drop_proposals(copy)
            self.blocks(copy, manual)
        return self.translated[key]

    def _end(self) -> Any:
        return types.ir.InsertionPoint(self.module.body)

    def blocks(self, around: Any, manual: tuple[str, ...]) -> None:
        for view in [op for region in around.regions for block in region.blocks for op in block.operations]:
            op = view.operation
            if op.name == "sdy.sharding_constraint":
                self.constraint(op, manual)
            elif op.name == "sdy.manual_computation":
                self.on_blocks(op, manual)
            elif op.name.startswith("sdy."):
                raise NotImplementedError(
                    f"the exported program has the operation {op.name}, which the partitioner of programs that call others"
                    " does not support"
                )
            else:
                _drop_proposals(op)
                if op.name == "func.call":
                    symbol = types.ir.FlatSymbolRefAttr(op.attributes["callee"]).value
                    op.attributes["callee"] = types.symbol(self.function(symbol, manual))
                elif op.name == "stablehlo.partition_id" and manual:
                    op.attributes["mhlo.sharding"] = types.string("{manual}")
                elif "replica_groups" in op.attributes:
                    op.attributes["replica_groups"] = self.groups(op.attributes["replica_groups"])
                self.blocks(op, manual)

    def constraint(self, op: Any, manual: tuple[str, ...]) -> None:
        value = op.operands[0]
        ((mesh, spec, free),) = self.shardings(op.attributes["sharding"])
        if len(free) < value.type.rank or any(spec):  # other constraints leave the choice to the partitioner
            value = _annotated(op, value, "Sharding", split(mesh, spec, value.type.rank, manual), value.type, free)
        op.results[0].replace_all_uses_with(value)
        op.erase()

    def on_blocks(self, op: Any, around: tuple[str, ...]) -> None:
        """Convert a computation on blocks to a function of blocks, with annotations around its call."""
        manual = tuple(_NAMES.findall(str(op.attributes["manual_axes"])))
        within, place = (*around, *manual), op.regions[0].blocks[0]
        inputs, outputs = (self.shardings(op.attributes[f"{side}_shardings"]) for side in ("in", "out"))
        given = [
            _converted(
                op,
                v,
                "SPMDFullToShardShape",
                split(mesh, spec, v.type.rank, around),
                split(mesh, _NOTHING, v.type.rank, within),
                a.type,
            )
            for v, a, (mesh, spec, _) in zip(op.operands, place.arguments, inputs, strict=True)
        ]
        ends = place.operations[len(place.operations) - 1].operation
        returned = [v.type for v in ends.operands]
        name = f"on_blocks_{len(self.translated)}"
        self.translated[name, frozenset(within)] = name
        with types.context:
            signature = types.ir.FunctionType.get([v.type for v in given], returned, types.context)
        body = types.ir.Operation.create(
            "func.func",
            regions=1,
            loc=types.unknown,
            ip=self._end(),
            attributes={
                "sym_name": types.string(name),
                "function_type": types.ir.TypeAttr.get(signature, types.context),
                "sym_visibility": types.string("private"),
            },
        )
        types.ir.Operation.create(
            "func.return", operands=list(ends.operands), loc=types.unknown, ip=types.ir.InsertionPoint(ends)
        )
        ends.erase()
        place.append_to(body.regions[0])
        self.blocks(body, within)
        call = types.ir.Operation.create(
            "func.call",
            results=returned,
            operands=given,
            attributes={"callee": types.symbol(name)},
            loc=types.unknown,
            ip=types.ir.InsertionPoint(op),
        )
        for old, v, (mesh, spec, _) in zip(op.results, call.results, outputs, strict=True):
            block, whole = split(mesh, _NOTHING, v.type.rank, within), split(mesh, spec, v.type.rank, around)
            old.replace_all_uses_with(_converted(op, v, "SPMDShardToFullShape", block, whole, old.type))
        op.erase()

    def groups(self, attribute: Any) -> Any:
        """The numbers of the communicating devices, for an attribute with axes of a mesh.

        Raises:
          NotImplementedError: the attribute names a part of an axis.
        """
        text = str(attribute)
        found = _AXES_OF_MESH.match(text)
        if found is None:
            return attribute
        if "sub_axis_info" in text:
            raise NotImplementedError(
                f"the exported program communicates over a part of an axis, which is not supported: {text}"
            )
        mesh, axes = self.meshes[found[1]], _NAMES.findall(found[2])
        rest = [name for name in mesh.axis_names if name not in axes]
        numbers = np.arange(mesh.size).reshape(mesh.axis_sizes)
        numbers = numbers.transpose([mesh.axis_names.index(name) for name in (*rest, *axes)])
        size = math.prod([mesh.shape[name] for name in axes])
        return types.dense(numbers.reshape(-1, size))

    def shardings(self, attribute: Any) -> list[tuple[AbstractMesh, PartitionSpec, list[int]]]:
        """The mesh, the spec, and the dimensions that may be split further, of each sharding in an attribute."""
        found = []
        for symbol, text, more in _SHARDING.findall(str(attribute)):
            if more or ":" in text:
                raise NotImplementedError(
                    f"the exported program has the sharding {attribute}, which has no form in HLO"
                )
            dims = _DIMS.findall(text)
            spec = PartitionSpec(*[tuple(_NAMES.findall(d)) or None for d in dims])
            found.append((self.meshes[symbol], spec, [i for i, d in enumerate(dims) if "?" in d]))
        return found


def _mesh(text: str) -> AbstractMesh:
    if "device_ids" in text:
        raise NotImplementedError(
            f"an exported program over the mesh {text}, which orders its devices, cannot be called"
        )
    axes = re.findall(r'"((?:[^"\\]|\\.)*)"=(\d+)', text)
    return AbstractMesh(tuple([int(size) for _, size in axes]), tuple([name for name, _ in axes]), AxisType.Auto)


def _text_of(op: Any, attribute: str) -> str:
    return types.ir.StringAttr(op.attributes[attribute]).value


def _annotated(before: Any, v: Any, target: str, place: Any, result: Any, free: Any = ()) -> Any:
    return annotated(types.ir.InsertionPoint(before), v, target, place, result, free)


def _converted(before: Any, v: Any, target: str, given: Any, wanted: Any, result: Any) -> Any:
    """An array as a block, or a block as an array."""
    free = () if wanted.is_manual() or given.is_manual() else range(v.type.rank)
    return _annotated(before, _annotated(before, v, "Sharding", given, v.type, free), target, wanted, result, free)


def _drop_proposals(op: Any) -> None:
    if "sdy.sharding" in op.attributes:
        del op.attributes["sdy.sharding"]
    for name in ("arg_attrs", "res_attrs"):
        if name in op.attributes:
            each = [
                {a.name: a.attr for a in d if a.name != "sdy.sharding"} for d in types.ir.ArrayAttr(op.attributes[name])
            ]
            new = [types.ir.DictAttr.get(d, types.context) for d in each]
            op.attributes[name] = types.ir.ArrayAttr.get(new, types.context)
