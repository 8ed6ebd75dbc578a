"""Programs for other times and places: symbolic shapes, several platforms, portable bytes.

`lower` makes a module whose main function finds the values of its dimension variables in the shapes of its
arguments, checks them, and (for several platforms) takes the index of the platform that it runs on. `specialize`
makes of such a module one for given shapes and a given platform; `import_functions` puts it into another module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax import shape_poly
from bedrax.core import dims
from bedrax.core.ir import Jaxpr
from bedrax.core.tables import programs
from bedrax.xla_backend import jaxlib_door as door
from bedrax.xla_backend import tables
from bedrax.xla_backend.lowering import engine, types
from bedrax.xla_backend.lowering.dimensions import DimValue
from bedrax.xla_backend.lowering.types import ir

_I32 = np.dtype(np.int32)
PLATFORM_INDEX = "_platform_index"


class Portable:
    """A lowered program: its module, which arguments it takes, and whether there is something to specialize."""

    def __init__(self, program: engine.Program, kept: tuple[int, ...], symbolic: bool):
        self.program = program
        self.kept = kept
        self.symbolic = symbolic


def all_static(avals) -> bool:
    """Whether all shapes are known."""
    return all(not a.is_array or dims.is_constant_shape(a.shape) for a in avals)


def solvable_arguments(jaxpr: Jaxpr, used: Sequence[bool]) -> tuple[int, ...]:
    """The arguments that a program needs: those it uses, and others only where dimension variables need them."""
    kept = tuple([i for i, u in enumerate(used) if u])
    avals = jaxpr.in_avals
    if not all_static(avals):
        try:
            shape_poly.solve_dims([avals[i].shape for i in kept], lambda i, k: Unknown())
            known = set().union(
                set(), *(d.variables for i in kept for d in avals[i].shape if dims.is_symbolic(d))
            )
        except ValueError:
            known = set()
        every = set().union(set(), *(d.variables for a in avals for d in a.shape if dims.is_symbolic(d)))
        if known != every:
            return tuple([i for i, a in enumerate(avals) if used[i] or not dims.is_constant_shape(a.shape)])
    return kept


class Unknown:
    """A number with arithmetic and no value."""

    def _same(self, *_):
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = max = min = _same


def lower(
    jaxpr: Jaxpr,
    name: str,
    platforms: Sequence[str],
    kept: tuple[int, ...],
    num_partitions: int = 1,
    names: Sequence[str] | None = None,
    result_names: Sequence[str] | None = None,
    mark_shardings: Callable | None = None,
) -> Portable:
    """Make a portable module.

    Args:
      platforms: one platform, or several: then main's first argument is the index of the one it runs on.
      kept: positions of the arguments that main takes.
      names: what arguments are called in messages about their shapes.
      mark_shardings: ``mark_shardings(arg_attrs, res_attrs)`` adds attributes to those of kept arguments and results.
    """
    program = engine.Program(name, platforms[0], num_partitions=num_partitions)
    avals = [jaxpr.invars[i].aval for i in kept]
    symbolic = not all_static(jaxpr.in_avals)
    several = len(platforms) > 1
    program.symbolic = symbolic or several
    if symbolic:
        program.module.operation.attributes["jax.uses_shape_polymorphism"] = ir.BoolAttr.get(
            True, types.context
        )
    in_types = [types.type_of(a) for a in avals]
    arg_attrs: list[dict] = [{} for _ in avals]
    out_avals = jaxpr.out_avals
    res_attrs = [{"jax.result_info": types.string(n)} for n in (result_names or ["result"] * len(out_avals))]
    if mark_shardings is not None:
        mark_shardings(arg_attrs, res_attrs)
    if several:
        in_types.insert(0, types.tensor_type((), _I32))
        arg_attrs.insert(0, {"jax.global_constant": types.string(PLATFORM_INDEX)})

    def body(block, values):
        values = list(values)
        if several:
            program.platforms = tuple(platforms)
            program.platform_index = values.pop(0)
        ctx = engine.LoweringContext(block, shape_poly.dim_as_value_p, [], [], {})
        if symbolic:
            argument_names = [names[i] for i in kept] if names is not None else None
            program.dim_values = _dimension_values(ctx, avals, values, argument_names)
        given: list = [None] * len(jaxpr.invars)
        for i, v in zip(kept, values, strict=True):
            given[i] = v
        return engine.inline(block, jaxpr, given)

    def dictionary(attrs):
        return ir.DictAttr.get(attrs, types.context)

    program.function(
        "main", in_types, [types.type_of(a) for a in out_avals], body, public=True,
        arg_attrs=[dictionary(a) for a in arg_attrs], res_attrs=[dictionary(a) for a in res_attrs], at_begin=True,
    )  # fmt: skip
    if program.scratch is not None:
        program.scratch.erase()
        program.scratch = None
    program.module.operation.verify()
    return Portable(program, kept, symbolic or several)


def _dimension_values(ctx, avals, values, names) -> dict[str, Any]:
    """Values of the dimension variables, with assertions that the shapes of the arguments fit."""
    scalar = types.tensor_type((), _I32)

    def size(i, axis):
        d = types.physical(avals[i])[0][axis]
        if dims.is_constant_dim(d):
            return int(d)
        return DimValue(ctx, ctx.emit("stablehlo.get_dimension_size", (values[i],), scalar, dimension=axis))

    def value(x):
        return x.value if isinstance(x, DimValue) else ctx.constant(int(x), _I32)

    def assertion(relation, x, y, message, details):
        holds = ctx.compare(value(x), value(y), "EQ" if relation == "==" else "GE")
        attributes = {
            "call_target_name": types.string("shape_assertion"), "has_side_effect": True,
            "api_version": types.i32(2), "error_message": types.string(message),
        }  # fmt: skip
        ctx.emit("stablehlo.custom_call", [holds, *map(value, details)], [], **attributes)

    found = shape_poly.solve_dims([a.shape for a in avals], size, assertion=assertion, names=names)
    return {name: value(x) for name, x in found.items()}


# ---- several platforms ----


def for_platforms(ctx, values: Sequence[Any], params: dict) -> Any:
    """Lower one equation for all platforms of the program: once if they agree, else as a choice by index."""
    program, prim = ctx.program, ctx.prim
    platforms, index = program.platforms, program.platform_index
    rules = [tables.find_rule(prim, p) for p in platforms]
    if programs[prim](params) and len(set(map(id, rules))) == 1:
        return rules[0](ctx, *values, **params)  # the equations inside are asked one by one
    program.platform_asked = len(set(map(id, rules))) > 1
    program.platforms = ()
    try:
        text = _attempt(ctx, rules[0], values, params)
        agree = not program.platform_asked
        if not agree:
            agree = True
            for rule, platform in zip(rules[1:], platforms[1:], strict=True):
                program.platform = platform
                agree = agree and _attempt(ctx, rule, values, params) == text
        if not agree:

            def branch(rule, platform):
                def body():
                    program.platform = platform
                    out = rule(ctx, *values, **params)
                    return list(out) if prim.multiple_results else out

                return (), body

            result_types = [types.type_of(a) for a in ctx.avals_out]
            regions = [branch(r, p) for r, p in zip(rules, platforms, strict=True)]
            out = ctx.emit("stablehlo.case", (index,), result_types, regions=regions)
            return out if prim.multiple_results else out[0]
    finally:
        program.platform = platforms[0]
        program.platforms = platforms
    program.platforms = ()
    try:
        return rules[0](ctx, *values, **params)
    finally:
        program.platforms = platforms


def _attempt(ctx, rule, values, params) -> str:
    """The text of what a rule makes, which is thrown away."""
    program = ctx.program
    if program.scratch is None:
        program.scratch = ir.Operation.create("builtin.module", regions=1, loc=types.unknown)
        program.scratch.regions[0].blocks.append()
    block = program.scratch.regions[0].blocks[0]
    host_callbacks, keepalives = list(program.host_callbacks), list(program.keepalives)
    attempt = ir.Operation.create("builtin.module", regions=1, loc=types.unknown, ip=ir.InsertionPoint(block))
    inner = attempt.regions[0].blocks.append(
        *[v.type for v in values], arg_locs=[types.unknown] * len(values)
    )
    saved = ctx.block
    ctx.block = engine.Block(program, ir.InsertionPoint(inner), dict(saved.tokens))
    try:
        rule(ctx, *inner.arguments, **params)
        return attempt.get_asm(print_generic_op_form=True)
    finally:
        ctx.block = saved
        attempt.erase()
        program.host_callbacks[:], program.keepalives[:] = host_callbacks, keepalives


# ---- bytes ----


def bytecode(module) -> bytes:
    """A module as MLIR bytecode."""
    import io

    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def serialize(module, version: str | None = None) -> bytes:
    """A module as a portable StableHLO artifact, by default of the version that consumers of 12 weeks ago read."""
    stablehlo = door.stablehlo()
    if version is None:
        version = stablehlo.get_version_from_compatibility_requirement(
            stablehlo.StablehloCompatibilityRequirement.WEEK_12
        )
    copy = ir.Module.parse(bytecode(module), types.context)  # serialization changes what it is given
    return stablehlo.serialize_portable_artifact(copy, version, True)


def deserialize(artifact: bytes) -> Any:
    """The module in a portable artifact."""
    with types.context:
        return door.stablehlo().deserialize_portable_artifact(types.context, artifact)


def decompose(module) -> None:
    """Replace the operations that are no StableHLO proper (CHLO: `erf`, `top_k`, `asinh`...) by such, in place.

    Raises:
      NotImplementedError: some of them cannot be; the message names them.
    """
    stablehlo = door.stablehlo()
    stablehlo.register_stablehlo_passes()
    from jaxlib.mlir.passmanager import PassManager

    with types.context:
        manager = PassManager.parse(
            "builtin.module(func.func(chlo-legalize-to-stablehlo,shape-legalize-to-stablehlo))"
        )
        manager.run(module.operation)
    left: set[str] = set()
    casts: list = []

    def collect(op):
        if op.name == "builtin.unrealized_conversion_cast":
            casts.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    # The passes leave casts behind: there and back again, which is nothing, and such that nobody uses.
    for op in casts:
        maker = op.operands[0].owner
        if getattr(maker, "name", "") == op.name and maker.operands[0].type == op.results[0].type:
            op.results[0].replace_all_uses_with(maker.operands[0])
    for op in reversed(casts):
        if not any(True for result in op.results for _ in result.uses):
            op.erase()

    def visit(op):
        if op.name == "builtin.unrealized_conversion_cast" or not op.name.startswith(
            ("stablehlo.", "func.", "builtin.")
        ):
            left.add(op.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if left:
        raise NotImplementedError(
            f"the program has operations that portable StableHLO lacks, at these shapes: {', '.join(sorted(left))}"
        )


def custom_call_targets(module) -> set[str]:
    """Names of the custom calls in a module."""
    found: set[str] = set()

    def visit(op):
        if op.name == "stablehlo.custom_call":
            found.add(ir.StringAttr(op.attributes["call_target_name"]).value)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def specialize(artifact: bytes, in_types: Sequence[Any], platform_index: int | None, symbolic: bool) -> Any:
    """The module for given types of its arguments and, if it takes it, the index of a platform.

    Args:
      in_types: MLIR types of the array arguments, all static.
      symbolic: whether there are shapes to refine.

    Raises:
      ValueError: the shapes do not fit; the message is that of the failed assertion.
    """
    module = deserialize(artifact)
    main = main_function(module)
    block = main.regions[0].blocks[0]
    arguments = list(block.arguments)
    if platform_index is not None:
        index = arguments.pop(0)
        attribute = types.splat(platform_index, types.dtype_of(index.type.element_type), ())
        constant = ir.Operation.create(
            "stablehlo.constant", results=[attribute.type], attributes={"value": attribute}, loc=types.unknown,
            ip=ir.InsertionPoint.at_block_begin(block),
        )  # fmt: skip
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
        refined = door.mlir_tools.refine_polymorphic_shapes(
            bytecode(module), enable_shape_assertions=True, validate_static_shapes=True
        )
    except Exception as error:
        text = str(error)
        if "Input shapes do not match" in text:
            start = text.index("Input shapes do not match")
            raise ValueError(text[start:].splitlines()[0]) from None
        raise ValueError(
            "the exported program could not be specialized to the shapes"
            f" {[str(t) for t in in_types]}: {text}"
        ) from error
    return ir.Module.parse(refined, types.context)


def _refine_argument(block, argument, wanted) -> None:
    """Give an argument of a function its known shape; the operations that use it see the type that they saw before."""
    known = argument.type
    if known == wanted:
        return
    attribute = types.dense(np.array(wanted.shape, np.int32))
    start = ir.InsertionPoint.at_block_begin(block)
    shape = ir.Operation.create(
        "stablehlo.constant",
        results=[attribute.type],
        attributes={"value": attribute},
        loc=types.unknown,
        ip=start,
    )
    argument.set_type(wanted)
    loose = ir.Operation.create(
        "stablehlo.dynamic_reshape",
        results=[known],
        operands=[argument, shape.result],
        loc=types.unknown,
        ip=start,
    )
    argument.replace_all_uses_except(loose.result, loose)


def main_function(module) -> Any:
    """The operation of the function called main."""
    for op in module.body.operations:
        if op.operation.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == "main":
            return op.operation
    raise ValueError("the module has no function called main")


def import_functions(program: engine.Program, module, name: str) -> str:
    """Copy the functions of `module` into a program, under new names; returns that of main."""
    new_names: dict[str, str] = {}
    for op in module.body.operations:
        old = ir.StringAttr(op.attributes["sym_name"]).value
        new_names[old] = program.unique_symbol(name if old == "main" else f"{name}_{old}")

    def renamed(attribute):
        if isinstance(attribute, ir.FlatSymbolRefAttr):
            found = new_names.get(attribute.value)
            return None if found is None else types.symbol(found)
        if isinstance(attribute, ir.ArrayAttr):
            parts = [renamed(a) for a in attribute]
            if any(p is not None for p in parts):
                return ir.ArrayAttr.get(
                    [p or a for p, a in zip(parts, attribute, strict=True)], types.context
                )
        return None

    def visit(op):
        for key in [a if isinstance(a, str) else a.name for a in op.attributes]:
            try:
                new = renamed(op.attributes[key])
            except TypeError:  # the bindings have no class for dense complex elements, which name nothing
                continue
            if new is not None:
                op.attributes[key] = new
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in module.body.operations:
        op.attributes["sym_name"] = types.string(new_names[ir.StringAttr(op.attributes["sym_name"]).value])
        op.attributes["sym_visibility"] = types.string("private")
        op.operation.clone(ip=ir.InsertionPoint(program.body))
    return new_names["main"]


def imported(program: engine.Program, exported, in_types, platform_index: int | None, refine: bool) -> str:
    """The function of `program` that is an exported program for these types; imported once."""
    key = (id(exported), tuple(map(str, in_types)), platform_index, refine)
    found = program._functions.get(key)
    if found is None:
        module = specialize(exported.mlir_module_serialized, in_types, platform_index, refine)
        found = import_functions(program, module, f"call_exported_{exported.fun_name}")
        if not program.symbolic:
            program._functions[key] = found
    return found


def call_function(ctx, symbol: str, operands: Sequence[Any]) -> list:
    """Call a function of the program's module; its operands and results are given the types that both sides expect."""
    function = next(
        op for op in ctx.program.body.operations if ir.StringAttr(op.attributes["sym_name"]).value == symbol
    )
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    operands = [_as_type(ctx, v, t) for v, t in zip(operands, signature.inputs, strict=True)]
    op = ir.Operation.create(
        "func.call", list(signature.results), operands, {"callee": types.symbol(symbol)}, None, 0, ctx.location,
        ctx.block.ip,
    )  # fmt: skip
    return [_as_type(ctx, v, types.type_of(a), a) for v, a in zip(op.results, ctx.avals_out, strict=True)]


def _as_type(ctx, v, wanted, aval=None):
    """`v` where a type is expected that knows more, or less, of its shape."""
    if v.type == wanted:
        return v
    if wanted.has_static_shape:
        sizes = ctx.constant(np.array(wanted.shape, np.int32))
    else:
        scalar = types.tensor_type((), _I32)
        parts = [
            ctx.reshape(ctx.emit("stablehlo.get_dimension_size", (v,), scalar, dimension=i), (1,))
            for i in range(wanted.rank)
        ]
        sizes = ctx.emit("stablehlo.concatenate", parts, types.tensor_type((len(parts),), _I32), dimension=0)
    return ctx.emit("stablehlo.dynamic_reshape", (v, sizes), wanted)
