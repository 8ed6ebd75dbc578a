"""Modules of other programs inside ours: specialized to shapes and a platform, imported, called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.xla_backend.door import kernels, mlir
from bedrax.xla_backend.lowering import types
from bedrax.xla_backend.lowering.exported_shardy import for_gspmd
from bedrax.xla_backend.lowering.modules import custom_call_targets, deserialize
from bedrax.xla_backend.lowering.program import Program
from bedrax.xla_backend.lowering.types import ir


def specialize(artifact: bytes, in_types: Sequence[Any], platform_index: int | None, symbolic: bool) -> Any:
    """The module for given types of its arguments and, if it has that argument, the index of a platform.

    Args:
      in_types: MLIR types of the tokens and array arguments, all static.
      symbolic: whether there are shapes to refine.

    Raises:
      ValueError: the shapes do not fit; the message is that of the failed assertion.
    """
    module = deserialize(artifact)
    for_gspmd(module)
    main = main_function(module)
    block = main.regions[0].blocks[0]
    arguments = list(block.arguments)
    if platform_index is not None:
        index = arguments.pop(0)
        attribute = types.splat(platform_index, types.dtype_of(index.type.element_type), ())
        constant = ir.Operation.create(
            "stablehlo.constant",
            results=[attribute.type],
            attributes={"value": attribute},
            loc=types.unknown,
            ip=ir.InsertionPoint.at_block_begin(block),
        )
        index.replace_all_uses_with(constant.result)
        block.erase_argument(0)
        if "arg_attrs" in main.attributes:
            main.attributes["arg_attrs"] = ir.ArrayAttr.get(
                list(ir.ArrayAttr(main.attributes["arg_attrs"]))[1:], types.context
            )
    for argument, wanted in zip(block.arguments, in_types, strict=True):
        _refine_argument(block, argument, wanted)
    old = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    with types.context:
        new = ir.FunctionType.get(list(in_types), old.results, types.context)
    main.attributes["function_type"] = ir.TypeAttr.get(new, types.context)
    if not symbolic:
        return module
    try:
        refined = mlir.tools.refine_polymorphic_shapes(
            mlir.bytecode(module), enable_shape_assertions=True, validate_static_shapes=True
        )
    except Exception as error:
        text = str(error)
        if "Input shapes do not match" in text:
            start = text.index("Input shapes do not match")
            raise ValueError(text[start:].splitlines()[0]) from None
        raise ValueError(
            f"the exported program could not be specialized to the shapes {[str(t) for t in in_types]}: {text}"
        ) from error
    return ir.Module.parse(refined, types.context)


def _refine_argument(block, argument, wanted) -> None:
    """Set the known shape of an argument of a function; the operations that use it get its former type."""
    known = argument.type
    if known == wanted:
        return
    attribute = types.dense(np.array(wanted.shape, np.int32))
    start = ir.InsertionPoint.at_block_begin(block)
    shape = ir.Operation.create(
        "stablehlo.constant", results=[attribute.type], attributes={"value": attribute}, loc=types.unknown, ip=start
    )
    argument.set_type(wanted)
    loose = ir.Operation.create(
        "stablehlo.dynamic_reshape", results=[known], operands=[argument, shape.result], loc=types.unknown, ip=start
    )
    argument.replace_all_uses_except(loose.result, loose)


def main_function(module: Any) -> Any:
    """The operation of the function main."""
    for op in module.body.operations:
        if op.operation.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == "main":
            return op.operation
    raise ValueError("the module has no function called main")


def import_functions(program: Program, module: Any, name: str) -> str:
    """Move the functions of `module` into a program, as private ones with new names; returns that of main."""
    functions = list(module.body.operations)
    names = {}
    for function in functions:
        old = ir.StringAttr(function.attributes["sym_name"]).value
        names[old] = program.unique_symbol(name if old == "main" else f"{name}_{old}")
    rename_functions(module, names)
    for target in custom_call_targets(module):
        kernels.require(target)
    for function in functions:
        function.detach_from_parent()
        program.body.append(function)
    return names["main"]


def rename_functions(module: Any, names: dict[str, str]) -> None:
    """Give the functions of a module the new `names`, make them private, and change their uses."""
    operation, functions = module.operation, list(module.body.operations)
    # In two steps, through names that nothing has: a new name may be the old name of another function.
    apart = {old: f"{old}/{i}" for i, old in enumerate(names)}
    for renamed in (apart, {apart[old]: new for old, new in names.items()}):
        for old, new in renamed.items():
            ir.SymbolTable.replace_all_symbol_uses(old, new, operation)
    for function in functions:
        old = ir.StringAttr(function.attributes["sym_name"]).value
        function.attributes["sym_name"] = ir.StringAttr.get(names[old], operation.context)
        function.attributes["sym_visibility"] = ir.StringAttr.get("private", operation.context)


def imported(program: Program, exported: Any, in_types: Any, platform_index: int | None, refine: bool) -> str:
    """The function of `program` for an exported program with these types; imported once."""
    key = (id(exported), tuple(map(str, in_types)), platform_index, refine)
    found = program._functions.get(key)
    if found is None:
        module = specialize(exported.mlir_module_serialized, in_types, platform_index, refine)
        found = import_functions(program, module, f"call_exported_{exported.fun_name}")
        if not program.symbolic:
            program._functions[key] = found
    return found


def call_function(ctx: Any, symbol: str, operands: Sequence[Any]) -> list[Any]:
    """Call a function of the program's module; its operands and results are converted to the types of both sides.

    Its tokens precede the results.
    """
    function = next(
        op for op in ctx.program.body.operations if ir.StringAttr(op.attributes["sym_name"]).value == symbol
    )
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    operands = [_as_type(ctx, v, t) for v, t in zip(operands, signature.inputs, strict=True)]
    op = ir.Operation.create(
        "func.call",
        list(signature.results),
        operands,
        {"callee": types.symbol(symbol)},
        None,
        0,
        ctx.location,
        ctx.block.ip,
    )
    wanted = [types.token_type() for _ in range(len(op.results) - len(ctx.avals_out))] + [
        types.type_of(a) for a in ctx.avals_out
    ]
    return [_as_type(ctx, v, t) for v, t in zip(op.results, wanted, strict=True)]


def _as_type(ctx, v, wanted):
    """`v` as a type with a more, or less, static shape."""
    if v.type == wanted:
        return v
    sizes = ctx.shape_tensor(tuple(wanted.shape)) if wanted.has_static_shape else ctx.sizes_of(v)
    return ctx.emit("stablehlo.dynamic_reshape", (v, sizes), wanted)


def call_hlo(ctx: Any, name: str, serialized: bytes, operands: Sequence[Any]) -> list[Any]:
    """Add an HLO program's functions to the module under construction, and call its entry.

    Args:
      ctx: the `LoweringContext` of the equation.
      name: the name of the entry.
      serialized: an ``HloModuleProto``.
      operands: a value per parameter.

    Returns:
      A value per result (the elements of a result that is a tuple).
    """
    # An operation without a StableHLO form becomes a custom call of XLA.
    stablehlo = mlir.tools.mhlo_to_stablehlo(mlir.tools.hlo_to_stablehlo(serialized))
    module = ir.Module.parse(stablehlo, types.context)
    results = ir.FunctionType(ir.TypeAttr(main_function(module).attributes["function_type"]).value).results
    symbol = import_functions(ctx.program, module, name)
    return ctx.emit("func.call", operands, list(results), callee=types.symbol(symbol))
