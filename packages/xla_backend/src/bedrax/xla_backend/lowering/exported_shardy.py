"""Exported programs that were written for Shardy, inside programs that GSPMD partitions.

A program that calls exported ones is GSPMD's: it and they may be over meshes of different axes. What a program proposes
for its values is dropped; how its arguments and results are split is said by its caller; what it asks for is translated.
"""

from __future__ import annotations

import re
from typing import Any

from bedrax.parallel.meshes import AbstractMesh
from bedrax.parallel.specs import PartitionSpec
from bedrax.xla_backend.lowering import types
from bedrax.xla_backend.lowering.modules import operations
from bedrax.xla_backend.sharding import NamedSharding


def for_gspmd(module: Any) -> None:
    """Say in HLO's shardings what a module says in Shardy's, as far as it is asked for, not only proposed.

    Raises:
      NotImplementedError: part of it is written for single devices (`shard_map`), or its mesh has an order of devices.
    """
    meshes = {}
    for op in operations(module):
        if op.name == "sdy.mesh":
            text = str(op.attributes["mesh"])
            names, sizes = zip(*re.findall(r'"((?:[^"\\]|\\.)*)"=(\d+)', text)) if "=" in text else ((), ())
            if "device_ids" in text:
                raise NotImplementedError(
                    f"an exported program over the mesh {text}, which orders its devices, cannot be called"
                )
            meshes[types.ir.StringAttr(op.attributes["sym_name"]).value] = AbstractMesh(tuple(map(int, sizes)), names)
    for op in operations(module):
        if op.name == "sdy.sharding_constraint":
            symbol, dims = re.fullmatch(r"#sdy\.sharding<@(\w+), \[(.*)\].*>", str(op.attributes["sharding"])).groups()
            entries = [re.findall(r'"([^"]*)"', d) for d in re.findall(r"\{([^}]*)\}", dims)]
            place = NamedSharding(meshes[symbol], PartitionSpec(*[tuple(e) or None for e in entries]))
            free = [str(i) for i, d in enumerate(re.findall(r"\{([^}]*)\}", dims)) if "?" in d]
            attributes = {
                "call_target_name": types.string("Sharding"), "api_version": types.i32(1),
                "mhlo.sharding": types.string(str(place._to_xla_hlo_sharding(len(entries)))),
                "backend_config": types.string(f"unspecified_dims=[{','.join(free)}]" if free else ""),
            }  # fmt: skip
            new = types.ir.Operation.create(
                "stablehlo.custom_call", results=[op.results[0].type], operands=list(op.operands), attributes=attributes,
                loc=types.unknown, ip=types.ir.InsertionPoint(op),
            )  # fmt: skip
            op.results[0].replace_all_uses_with(new.result)
            op.erase()
        elif op.name == "sdy.mesh":
            op.erase()
        elif op.name.startswith("sdy.") and op.name != "sdy.return":
            raise NotImplementedError(
                f"the exported program has the operation {op.name}, which the partitioner of programs that call others does not know;"
                " export the function without shard_map"
            )
        else:
            _drop_proposals(op)


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
