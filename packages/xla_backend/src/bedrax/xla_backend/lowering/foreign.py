"""Programs that others compiled to HLO, as private functions of ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bedrax.xla_backend import jaxlib_door as door
from bedrax.xla_backend.lowering import types


def call_hlo(ctx: Any, name: str, serialized: bytes, operands: Sequence[Any]) -> list:
    """Add an HLO program's functions to the module under construction, and call its entry.

    Args:
      ctx: the `LoweringContext` of the equation that becomes the call.
      name: what the entry should be called.
      serialized: an ``HloModuleProto``.
      operands: a value per parameter.

    Returns:
      A value per result (the elements of a result that is a tuple).
    """
    program = ctx.program
    ir = types.ir
    # What StableHLO has no operation for becomes a custom call, which XLA knows.
    stablehlo = door.mlir_tools.mhlo_to_stablehlo(door.mlir_tools.hlo_to_stablehlo(serialized))
    module = ir.Module.parse(stablehlo, types.context)
    functions = list(module.body.operations)
    table = ir.SymbolTable(module.operation)
    for function in functions:
        old = ir.StringAttr(function.attributes["sym_name"]).value
        new = program.unique_symbol(name if old == "main" else f"{name}.{old}")
        if old == "main":
            entry = new
            result_types = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results
        ir.SymbolTable.replace_all_symbol_uses(old, new, module.operation)
        table.set_symbol_name(function, new)
        function.attributes["sym_visibility"] = types.string("private")
    for function in functions:
        function.detach_from_parent()
        program.body.append(function)
    return ctx.emit("func.call", operands, list(result_types), callee=ctx.symbol(entry))
