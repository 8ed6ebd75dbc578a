"""jaxpr -> StableHLO, in one pass.

`Program` is the module under construction: its functions, host callbacks, and what its executable must keep
alive. A `Block` is where operations are being appended, with the tokens of ordered effects and the scalar
constants already there. `LoweringContext` is what a rule sees of one equation; the package's README lists
what rules may use.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax.core import config, dims, dtypes, effects, element_types
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.exact import exact
from bedrax.core.ir import Jaxpr, Literal
from bedrax.core.tables import families_on_bases
from bedrax.xla_backend import jaxlib_door as door
from bedrax.xla_backend import tables
from bedrax.xla_backend.lowering import types
from bedrax.xla_backend.lowering.types import ir, tensor_type, type_of

_create = ir.Operation.create
_context = types.context


class Program:
    """A StableHLO module under construction.

    Attributes:
      platform: what rules are chosen for.
      host_callbacks: Python callables that the executable calls, by index.
      keepalives: objects that must live as long as the executable.
      dim_values: symbolic dimension variable -> rank-0 i32 value, in the main function.
    """

    def __init__(self, name: str, platform: str, num_partitions: int = 1, num_replicas: int = 1):
        self.name = name
        self.platform = platform
        self.num_partitions = num_partitions
        self.module = ir.Module.create(loc=types.unknown)
        attributes = self.module.operation.attributes
        attributes["sym_name"] = types.string(_symbol_name(name))
        attributes["mhlo.num_replicas"] = types.i32(num_replicas)
        attributes["mhlo.num_partitions"] = types.i32(num_partitions)
        self.body = self.module.body
        self.host_callbacks: list[Any] = []
        self.keepalives: list[Any] = []
        self.dim_values: dict[str, Any] = {}
        self.symbolic = False
        self.shapes: dict[
            Any, tuple
        ] = {}  # of values whose types do not tell: shapes with symbolic dimensions
        # Of programs for several platforms: their names, a value that says which one it is, and whether a rule asked.
        self.platforms: tuple[str, ...] = ()
        self.platform_index: Any = None
        self.platform_asked = False
        self.scratch: Any = None
        self._functions: dict[Any, str] = {}
        self._symbols: set[str] = {"main"}

    def unique_symbol(self, name: str) -> str:
        """A symbol name like `name` that the module does not have yet."""
        name = _symbol_name(name)
        found, n = name, 0
        while found in self._symbols:
            found = f"{name}_{n}"
            n += 1
        self._symbols.add(found)
        return found

    def function(self, symbol: str, in_types, out_types, body: Callable, public: bool = False, arg_attrs=None,
                 res_attrs=None, at_begin: bool = False) -> None:  # fmt: skip
        """Add a function; ``body(block, arguments)`` returns the results."""
        with _context:
            function_type = ir.FunctionType.get(list(in_types), list(out_types), _context)
        attributes = {
            "sym_name": types.string(symbol),
            "function_type": ir.TypeAttr.get(function_type, _context),
            "sym_visibility": types.string("public" if public else "private"),
        }
        if arg_attrs is not None:
            attributes["arg_attrs"] = ir.ArrayAttr.get(arg_attrs, _context)
        if res_attrs is not None:
            attributes["res_attrs"] = ir.ArrayAttr.get(res_attrs, _context)
        point = ir.InsertionPoint.at_block_begin(self.body) if at_begin else ir.InsertionPoint(self.body)
        op = _create("func.func", attributes=attributes, regions=1, loc=types.unknown, ip=point)
        block = op.regions[0].blocks.append(*in_types, arg_locs=[types.unknown] * len(in_types))
        place = Block(self, ir.InsertionPoint(block))
        results = body(place, list(block.arguments))
        _create("func.return", operands=list(results), loc=types.unknown, ip=place.ip)

    def text(self, debug_info: bool = False) -> str:
        """The module as text."""
        return self.module.operation.get_asm(enable_debug_info=debug_info, pretty_debug_info=False)


def _symbol_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "_.-$" else "_" for c in name)


class Block:
    """Where operations are appended."""

    __slots__ = ("constants", "ip", "program", "tokens")

    def __init__(self, program: Program, ip: Any, tokens: dict | None = None):
        self.program = program
        self.ip = ip
        self.constants: dict = {}
        self.tokens: dict = {} if tokens is None else tokens

    def constant(self, value: Any, dtype: np.dtype) -> Any:
        """A rank-0 constant; one operation per value and block."""
        key = (exact(value), dtype)
        found = self.constants.get(key)
        if found is None:
            attribute = types.splat(value, dtype, ())
            found = self.constants[key] = _create(
                "stablehlo.constant", results=[attribute.type], attributes={"value": attribute},
                loc=types.unknown, ip=self.ip).result  # fmt: skip
        return found


def inline(block: Block, jaxpr: Jaxpr, operands: Sequence[Any], consts: Sequence[Any] | None = None) -> list:
    """Append the equations of `jaxpr` to `block`.

    Args:
      operands: a value per invar.
      consts: a value per constvar; by default the program's constants are written as constants.

    Returns:
      A value per outvar.
    """
    env: dict = {}
    if jaxpr.constvars:
        if consts is None:
            consts = [array_constant(block, c, v.aval) for v, c in zip(jaxpr.constvars, jaxpr.consts)]
        env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, operands, strict=True))
    program = block.program
    if program.symbolic:
        _remember_shapes(program, jaxpr.invars, operands)
    find = tables.find_rule
    for eqn in jaxpr.eqns:
        prim = eqn.primitive
        values = []
        for v in eqn.invars:
            if type(v) is Literal:
                aval = v.aval
                values.append(
                    block.constant(v.val, aval.dtype) if isinstance(aval.dtype, np.dtype) and not aval.shape
                    else array_constant(block, v.val, aval)
                )  # fmt: skip
            else:
                values.append(env[v])
        ctx = LoweringContext(
            block, prim, [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars], eqn.params,
            _location(prim, eqn.source_info), eqn.effects,
        )  # fmt: skip
        try:
            rule = find(prim, program.platform)
            if prim.family not in families_on_bases and _has_keys(eqn):
                out = ctx.lower_fun(element_types.function_on_bases(prim, ctx.avals_in, eqn.params), *values)
            elif program.platforms:
                from bedrax.xla_backend.lowering import portable

                out = portable.for_platforms(ctx, values, eqn.params)
            else:
                out = rule(ctx, *values, **eqn.params)
        except ir.MLIRError as error:
            raise _lowering_bug(ctx, error) from error
        if program.symbolic:
            _remember_shapes(program, eqn.outvars, out if type(out) is list or type(out) is tuple else [out])
        if prim.multiple_results:
            if len(out) != len(eqn.outvars):
                raise ValueError(
                    f"the StableHLO rule of '{prim}' returned {len(out)} values, the primitive has {len(eqn.outvars)}"
                )
            env.update(zip(eqn.outvars, out))
        else:
            if type(out) is list or type(out) is tuple:
                (out,) = out
            env[eqn.outvars[0]] = out
    return [env[v] if type(v) is not Literal else array_constant(block, v.val, v.aval) for v in jaxpr.outvars]


def _remember_shapes(program: Program, variables, values) -> None:
    for v, value in zip(variables, values):
        aval = v.aval
        if value is not None and aval.is_array and not dims.is_constant_shape(aval.shape):
            program.shapes[value] = types.physical(aval)[0]


def _has_keys(eqn) -> bool:
    for v in (*eqn.invars, *eqn.outvars):
        aval = v.aval
        if aval.is_array and not isinstance(aval.dtype, np.dtype):
            return True
    return False


def _lowering_bug(ctx: LoweringContext, error) -> Exception:
    return ValueError(
        f"the StableHLO rule of primitive '{ctx.prim}' made an invalid operation for operands"
        f" {[str(a) for a in ctx.avals_in]} and parameters {ctx.params}: {error}"
    )


def array_constant(block: Block, x: Any, aval: ShapedArray) -> Any:
    """A constant with the value of `x`, an array or a scalar of type `aval`."""
    if not aval.is_array:
        return _create(
            "stablehlo.create_token", results=[types.token_type], loc=types.unknown, ip=block.ip
        ).result
    shape, dtype = types.physical(aval)
    if dtype.kind == "V" and dtype.itemsize == 0 or dtype.name == "float0":
        attribute = types.splat(False, np.dtype(bool), tuple(shape))
    else:
        if not isinstance(aval.dtype, np.dtype):
            x = aval.dtype.physical_value(x)
        value = np.asarray(x)
        if value.dtype != dtype:
            value = value.astype(dtype)
        if not value.shape:
            return block.constant(value[()], dtype)
        attribute = types.dense(value)
    return _create(
        "stablehlo.constant",
        results=[attribute.type],
        attributes={"value": attribute},
        loc=types.unknown,
        ip=block.ip,
    ).result


_locations: dict[Any, Any] = {}


def _location(prim, source_info) -> Any:
    """Where in the user's code an equation comes from, under the primitive's name."""
    if source_info is None:
        key: Any = (prim,)
    else:  # a code object is hashed by reading all of it: its identity will do, while the entry keeps it alive
        key = (prim, id(source_info[0]), *source_info[1:])
    found = _locations.get(key)
    if found is None:
        if len(_locations) > 20000:
            _locations.clear()
        name, child, code = prim.name, None, None
        if source_info is not None:
            from bedrax.core import source

            code = source_info[0]
            if len(source_info) > 2:
                name = f"{source_info[2]}/{name}"
            file, line, _, column, *_ = source.position_of(source_info[:2])
            child = ir.Location.file(file, line, column, _context)
        found = _locations[key] = (ir.Location.name(name, child, _context), code)
    return found[0]


class LoweringContext:
    """What a rule sees of one equation; see "Writing a lowering rule" in the package's README."""

    __slots__ = ("avals_in", "avals_out", "block", "effects", "location", "params", "prim", "program")

    def __init__(self, block, prim, avals_in, avals_out, params, location=types.unknown, effects=frozenset()):
        self.block = block
        self.program = block.program
        self.prim = prim
        self.avals_in = avals_in
        self.avals_out = avals_out
        self.params = params
        self.location = location
        self.effects = effects

    parse = staticmethod(types.parse)
    i32 = staticmethod(types.i32)
    i64 = staticmethod(types.i64)
    attribute = staticmethod(types.attribute)
    symbol = staticmethod(types.symbol)
    inline_in = staticmethod(inline)
    type_of = staticmethod(type_of)
    tensor_type = staticmethod(tensor_type)
    i32_type = types.i32_type
    i64_type = types.i64_type
    token_type = types.token_type
    is_static = staticmethod(dims.is_constant_shape)

    @property
    def platform(self) -> str:
        """What to lower for."""
        self.program.platform_asked = True
        return self.program.platform

    def replace(self, **changes) -> LoweringContext:
        """A copy for other avals or parameters, at the same place."""
        fields = dict(prim=self.prim, avals_in=self.avals_in, avals_out=self.avals_out, params=self.params)
        fields.update(changes)
        return LoweringContext(self.block, location=self.location, effects=self.effects, **fields)

    # ---- making operations ----

    def emit(self, name: str, operands: Sequence[Any], /, result_types: Any = None, regions: Sequence[Any] = (),
             **attributes) -> Any:  # fmt: skip
        """Append one operation and return its value, or list of values; see the README."""
        if result_types is None:
            results = [type_of(a) for a in self.avals_out]
            single = not self.prim.multiple_results
        elif type(result_types) is list or type(result_types) is tuple:
            results = [type_of(t) for t in result_types]
            single = False
        else:
            results = [type_of(result_types)]
            single = True
        converted = None
        if attributes:
            convert = types.attribute
            converted = {k: convert(v) for k, v in attributes.items() if v is not None}
        op = _create(name, results, operands, converted, None, len(regions), self.location, self.block.ip)
        if regions:
            for region, (arg_types, body) in zip(op.regions, regions, strict=True):
                self._fill(region, arg_types, body)
        return op.result if single else list(op.results)

    def _fill(self, region, arg_types, body) -> None:
        arg_types = [type_of(t) for t in arg_types]
        block = region.blocks.append(*arg_types, arg_locs=[types.unknown] * len(arg_types))
        saved = self.block
        inner = Block(self.program, ir.InsertionPoint(block), dict(saved.tokens))
        self.block = inner
        try:
            out = body(*block.arguments)
        finally:
            self.block = saved
        if isinstance(out, types.Value):
            out = [out]
        _create("stablehlo.return", operands=list(out), loc=self.location, ip=inner.ip)

    @staticmethod
    def region(arg_types, body) -> tuple:
        """A region for `emit`: argument types, and a function from block arguments to results."""
        return arg_types, body

    def reducer_region(self, name: str, dtype) -> tuple:
        """The region ``(x, y) -> name(x, y)`` on rank-0 tensors."""
        scalar = tensor_type((), np.dtype(dtype))
        return (scalar, scalar), lambda x, y: self.emit(name, (x, y), scalar)

    def jaxpr_region(self, jaxpr: Jaxpr) -> tuple:
        """A region whose body is `jaxpr`, on its arguments."""
        return [type_of(v.aval) for v in jaxpr.invars], lambda *args: self.inline_jaxpr(jaxpr, *args)

    # ---- values ----

    def shape(self, v) -> tuple:
        """The shape of a value; symbolic dimensions are known of operands and results of equations only."""
        return self.program.shapes.get(v) or tuple(v.type.shape)

    @staticmethod
    def dtype(v) -> np.dtype:
        """The dtype of a value."""
        return types.dtype_of(v.type.element_type)

    def constant(self, x: Any, dtype: Any = None) -> Any:
        """A constant from a NumPy value or Python scalar."""
        if isinstance(x, np.ndarray) and x.ndim:
            value = x if dtype is None else x.astype(dtype)
            return array_constant(self.block, value, ShapedArray(value.shape, value.dtype))
        if dtype is None:
            dtype = x.dtype if isinstance(x, (np.ndarray, np.generic)) else aval_of(x).dtype
        x = x[()] if isinstance(x, np.ndarray) else x
        return self.block.constant(x, np.dtype(dtype))

    def full(self, shape: Sequence[Any], x: Any, dtype: Any) -> Any:
        """An array of `shape` (which may be symbolic) that holds `x` everywhere."""
        dtype = np.dtype(dtype)
        shape = tuple(shape)
        if not dims.is_constant_shape(shape):
            return self.broadcast_in_dim(self.constant(x, dtype), shape, ())
        if not shape:
            return self.constant(x, dtype)
        return self.emit(
            "stablehlo.constant", (), tensor_type(shape, dtype), value=types.splat(x, dtype, shape)
        )

    def unary(self, name: str, v: Any) -> Any:
        """An operation whose result has the operand's type."""
        return self.emit(name, (v,), v.type)

    def binary(self, name: str, x: Any, y: Any) -> Any:
        """An operation whose result has its operands' type; a rank-0 operand is broadcast."""
        x, y = self._same_shape(x, y)
        return self.emit(name, (x, y), x.type)

    def _same_shape(self, x, y):
        if x.type.rank != y.type.rank:
            if not x.type.rank:
                x = self._like(x, y)
            elif not y.type.rank:
                y = self._like(y, x)
        return x, y

    def _like(self, scalar, v):
        if v.type.has_static_shape:
            return self.broadcast_in_dim(scalar, tuple(v.type.shape), ())
        i32 = tensor_type((), np.dtype(np.int32))
        parts = [
            self.reshape(self.emit("stablehlo.get_dimension_size", (v,), i32, dimension=i), (1,))
            for i in range(v.type.rank)
        ]
        sizes = self.emit(
            "stablehlo.concatenate", parts, tensor_type((len(parts),), np.dtype(np.int32)), dimension=0
        )
        return self.emit(
            "stablehlo.dynamic_broadcast_in_dim", (scalar, sizes), v.type, broadcast_dimensions=()
        )

    def broadcast_operands(self, operands: Sequence[Any], shape: Sequence[Any] | None = None) -> list:
        """Operands with those of rank 0 broadcast to `shape` (default: the result's)."""
        if shape is None:
            shape = types.physical(self.avals_out[0])[0] if self.avals_out[0].is_array else ()
        if not shape:
            return list(operands)
        return [v if v.type.rank else self.broadcast_in_dim(v, shape, ()) for v in operands]

    def convert(self, v: Any, dtype: Any) -> Any:
        """`v` with its elements converted as StableHLO does."""
        element = types.element_type(np.dtype(dtype))
        if v.type.element_type == element:
            return v
        return self.emit(
            "stablehlo.convert",
            (v,),
            ir.RankedTensorType.get_unchecked(v.type.shape, element, context=_context),
        )

    def reshape(self, v: Any, shape: Sequence[Any]) -> Any:
        """`v` in another shape, which may be symbolic."""
        shape = tuple(shape)
        result = ir.RankedTensorType.get_unchecked(_sizes(shape), v.type.element_type, context=_context)
        if dims.is_constant_shape(shape):
            return v if result == v.type else self.emit("stablehlo.reshape", (v,), result)
        return self.emit("stablehlo.dynamic_reshape", (v, self.shape_tensor(shape)), result)

    def broadcast_in_dim(self, v: Any, shape: Sequence[Any], dimensions: Sequence[int]) -> Any:
        """`v` with its dimension i as dimension ``dimensions[i]`` of `shape`, which may be symbolic."""
        shape = tuple(shape)
        result = ir.RankedTensorType.get_unchecked(_sizes(shape), v.type.element_type, context=_context)
        if dims.is_constant_shape(shape):
            if result == v.type and tuple(dimensions) == tuple(range(len(shape))):
                return v
            return self.emit(
                "stablehlo.broadcast_in_dim", (v,), result, broadcast_dimensions=tuple(dimensions)
            )
        return self.emit(
            "stablehlo.dynamic_broadcast_in_dim", (v, self.shape_tensor(shape)), result,
            broadcast_dimensions=tuple(dimensions))  # fmt: skip

    def transpose(self, v: Any, permutation: Sequence[int]) -> Any:
        """`v` with its dimensions permuted."""
        permutation = tuple(permutation)
        if permutation == tuple(range(len(permutation))):
            return v
        sizes = v.type.shape
        result = ir.RankedTensorType.get_unchecked(
            [sizes[i] for i in permutation], v.type.element_type, context=_context
        )
        return self.emit("stablehlo.transpose", (v,), result, permutation=permutation)

    def slice(
        self, v: Any, starts: Sequence[Any], limits: Sequence[Any], strides: Sequence[int] | None = None
    ) -> Any:
        """A slice; bounds may be symbolic."""
        starts, limits = tuple(starts), tuple(limits)
        strides = (1,) * len(starts) if strides is None else tuple(strides)
        shape = tuple([
            dims.stride_dim(b - a, 1, s) for a, b, s in zip(starts, limits, strides, strict=True)
        ])  # fmt: skip
        result = ir.RankedTensorType.get_unchecked(_sizes(shape), v.type.element_type, context=_context)
        if dims.is_constant_shape(starts) and dims.is_constant_shape(limits):
            return self.emit(
                "stablehlo.slice", (v,), result, start_indices=starts, limit_indices=limits, strides=strides
            )
        operands = (v, *(self.shape_tensor(t) for t in (starts, limits, strides)))
        return self.emit("stablehlo.real_dynamic_slice", operands, result)

    def pad(
        self, v: Any, value: Any, low: Sequence[Any], high: Sequence[Any], interior: Sequence[int],
        shape: Sequence[Any] | None = None,
    ) -> Any:  # fmt: skip
        """Padding with the rank-0 `value`; amounts may be symbolic, then to `shape` (default: that of the result)."""
        low, high, interior = tuple(low), tuple(high), tuple(interior)
        if all(dims.is_constant_shape(t) for t in (low, high)) and v.type.has_static_shape:
            shape = [
                n + a + b + max(n - 1, 0) * i
                for n, a, b, i in zip(v.type.shape, low, high, interior, strict=True)
            ]
            result = ir.RankedTensorType.get_unchecked(shape, v.type.element_type, context=_context)
            return self.emit(
                "stablehlo.pad", (v, value), result, edge_padding_low=low, edge_padding_high=high,
                interior_padding=interior)  # fmt: skip
        operands = (v, value, *(self.shape_tensor(t) for t in (low, high, interior)))
        result = None if shape is None else tensor_type(tuple(shape), self.dtype(v))
        return self.emit("stablehlo.dynamic_pad", operands, result)

    def compare(self, x: Any, y: Any, direction: str, kind: str | None = None) -> Any:
        """Elementwise comparison: "EQ" "NE" "LT" "LE" "GT" "GE"."""
        x, y = self._same_shape(x, y)
        if kind is None:
            kind = _comparison_kind(self.dtype(x))
        result = ir.RankedTensorType.get_unchecked(x.type.shape, types.i1_type, context=_context)
        return self.emit(
            "stablehlo.compare", (x, y), result,
            comparison_direction=types.parse(f"#stablehlo<comparison_direction {direction}>"),
            compare_type=types.parse(f"#stablehlo<comparison_type {kind}>"))  # fmt: skip

    def select(self, predicate: Any, x: Any, y: Any) -> Any:
        """`x` where `predicate`, else `y`; rank-0 operands are broadcast."""
        x, y = self._same_shape(x, y)
        if predicate.type.rank and not x.type.rank:
            x, y = self._like(x, predicate), self._like(y, predicate)
        return self.emit("stablehlo.select", (predicate, x, y), x.type)

    def reduce(self, v: Any, init: Any, axes: Sequence[int], name: str) -> Any:
        """`v` reduced over `axes` with the binary operation `name`."""
        axes = tuple(axes)
        kept = [n for i, n in enumerate(v.type.shape) if i not in axes]
        element = v.type.element_type
        result = ir.RankedTensorType.get_unchecked(kept, element, context=_context)
        scalar = ir.RankedTensorType.get_unchecked([], element, context=_context)
        region = ((scalar, scalar), lambda x, y: self.emit(name, (x, y), scalar))
        return self.emit("stablehlo.reduce", (v, init), result, regions=(region,), dimensions=axes)

    def custom_call(self, target: str, operands: Sequence[Any], result_types: Any = None, backend_config: Any = None,
                    api_version: int = 4, has_side_effect: bool = False, operand_layouts: Any = None,
                    result_layouts: Any = None, operand_output_aliases: dict[int, int] | None = None,
                    called_computations: Sequence[str] = (), extra_attributes: dict | None = None,
                    result_shapes: Sequence[Any] | None = None) -> Any:  # fmt: skip
        """A call of a function that XLA knows by name.

        Args:
          backend_config: a dict of typed attributes (`api_version` 4) or a string (older versions).
          operand_layouts, result_layouts: minor-to-major orders; where one is needed and `None` is given,
            row-major.
          operand_output_aliases: result index -> operand index.
          result_shapes: shapes of the results where some are symbolic: they are found when the program is
            specialized to known shapes.
        """
        operands = list(operands)
        door.register_custom_call_library(target)
        attributes: dict[str, Any] = {
            "call_target_name": types.string(target),
            "has_side_effect": bool(has_side_effect),
            "api_version": types.i32(api_version),
        }
        if api_version == 4:
            attributes["backend_config"] = types.ffi_attribute(dict(backend_config or {}))
        elif backend_config is not None:
            if isinstance(backend_config, bytes):
                backend_config = backend_config.decode("latin-1")
            attributes["backend_config"] = types.string(backend_config)
        if called_computations:
            attributes["called_computations"] = tuple(types.symbol(c) for c in called_computations)
        if operand_output_aliases:
            attributes["output_operand_aliases"] = tuple(
                types.parse(
                    f"#stablehlo.output_operand_alias<output_tuple_indices = [{out if result_count(result_types) > 1 else ''}],"
                    f" operand_index = {arg}, operand_tuple_indices = []>"
                )
                for out, arg in _aliases(operand_output_aliases)
            )
        if operand_layouts is not None or result_layouts is not None:
            outs = result_types if isinstance(result_types, (list, tuple)) else [result_types]
            if result_types is None:
                outs = self.avals_out
            attributes["operand_layouts"] = _layouts(operand_layouts, [v.type for v in operands])
            attributes["result_layouts"] = _layouts(result_layouts, [type_of(t) for t in outs])
        attributes.update(extra_attributes or {})
        if result_shapes is not None and not all(map(dims.is_constant_shape, result_shapes)):
            count = len(operands)
            operands += [self.shape_tensor(shape) for shape in result_shapes]
            attributes["indices_of_shape_operands"] = np.arange(count, len(operands), dtype=np.int64)
            if "operand_layouts" in attributes:
                attributes["operand_layouts"] = _layouts(
                    [*operand_layouts, *[None] * len(result_shapes)], [v.type for v in operands]
                )
        return self.emit("stablehlo.custom_call", operands, result_types, **attributes)

    def with_sharding(self, v: Any, sharding: Any) -> Any:
        """`v`, which the partitioner is to split as an `HloSharding` says (None: as it likes)."""
        if sharding is None or self.program.num_partitions == 1:
            return v
        return self.emit(
            "stablehlo.custom_call", (v,), v.type, call_target_name="Sharding", api_version=types.i32(1),
            **{"mhlo.sharding": str(sharding)})  # fmt: skip

    @contextlib.contextmanager
    def only_platform(self, platform: str):
        """For the duration, rules are chosen for one of the several platforms that the program is for."""
        program = self.program
        saved = program.platform, program.platforms
        program.platform, program.platforms = platform, ()
        try:
            yield
        finally:
            program.platform, program.platforms = saved

    # ---- programs inside programs ----

    def inline_jaxpr(self, jaxpr: Jaxpr, *operands: Any) -> list:
        """Append the equations of `jaxpr` here; a value per result."""
        return inline(self.block, jaxpr, operands)

    def call_jaxpr(self, name: str, jaxpr: Jaxpr, *operands: Any) -> list:
        """Call `jaxpr` as a private function of the module, made once per program; a value per result."""
        program = self.program
        if program.symbolic or any(e in effects.ordered_effects for e in jaxpr.effects):
            return self.inline_jaxpr(jaxpr, *operands)
        symbol = program._functions.get(jaxpr)
        if symbol is None:
            symbol = program._functions[jaxpr] = program.unique_symbol(name)
            program.function(
                symbol, [type_of(v.aval) for v in jaxpr.invars], [type_of(v.aval) for v in jaxpr.outvars],
                lambda block, arguments: inline(block, jaxpr, arguments))  # fmt: skip
        op = _create(
            "func.call", [type_of(v.aval) for v in jaxpr.outvars], operands, {"callee": types.symbol(symbol)}, None,
            0, self.location, self.block.ip)  # fmt: skip
        return list(op.results)

    def lower_fun(
        self, fun: Callable, *operands: Any, avals: Sequence[Any] | None = None, **kwargs: Any
    ) -> Any:
        """Trace ``fun(*args, **kwargs)`` at `avals` (default `avals_in`) and inline it.

        Returns:
          a value if `fun` returns an array, else a list of values.
        """
        avals = map(element_types.base_aval, self.avals_in) if avals is None else avals
        jaxpr, single = traced(fun, tuple(avals), kwargs)
        out = inline(self.block, jaxpr, operands)
        return out[0] if single else out

    # ---- effects, callbacks, dimensions ----

    def token(self, effect: Any) -> Any:
        """The current token of an ordered effect."""
        tokens = self.block.tokens
        if effect not in tokens:
            tokens[effect] = self.emit("stablehlo.create_token", (), types.token_type)
        return tokens[effect]

    def set_token(self, effect: Any, token: Any) -> None:
        """Make `token` the current token of an ordered effect."""
        self.block.tokens[effect] = token

    def add_host_callback(self, function: Any) -> int:
        """Index of `function` among the executable's host callbacks."""
        self.program.host_callbacks.append(function)
        return len(self.program.host_callbacks) - 1

    def host_callback(self, function: Callable, operands: Sequence[Any], result_types: Sequence[Any], effect: Any = None,
                      has_side_effect: bool = True) -> list:  # fmt: skip
        """Call ``function(*arrays) -> sequence of arrays`` on the host when the program runs; a value per result.

        Args:
          function: gets a `numpy.ndarray` per operand; its results are checked against `result_types`.
          result_types: types or avals of the results.
          effect: an ordered effect whose token the call takes and renews.
          has_side_effect: false lets the compiler drop or repeat the call.
        """
        target = _CALLBACK_TARGETS.get(self.platform)
        if target is None:
            raise NotImplementedError(
                f"callbacks into Python cannot be compiled for platform {self.platform!r}"
            )
        wanted = [type_of(t) for t in result_types]
        checked = _checked_callback(function, wanted, effect is not None)
        config_of_call = {"index": np.uint64(self.add_host_callback(checked))}
        tokens = [] if effect is None else [self.token(effect)]
        out = self.custom_call(
            target,
            [*tokens, *operands],
            [t.type for t in tokens] + wanted,
            config_of_call,
            has_side_effect=has_side_effect,
        )
        if effect is not None:
            self.set_token(effect, out[0])
        return out[len(tokens) :]

    def keep_alive(self, x: Any) -> None:
        """`x` lives at least as long as the executable."""
        self.program.keepalives.append(x)

    def dim_value(self, d: Any) -> Any:
        """A dimension as a rank-0 i32 value."""
        if dims.is_constant_dim(d):
            return self.constant(int(d), np.int32)
        from bedrax.xla_backend.lowering import dimensions

        return dimensions.value(self, d)

    def shape_tensor(self, shape: Sequence[Any]) -> Any:
        """A shape as a rank-1 i32 value."""
        shape = tuple(shape)
        if dims.is_constant_shape(shape):
            return self.constant(np.array(shape, np.int32).reshape(len(shape)))
        one = tensor_type((1,), np.dtype(np.int32))
        parts = [self.emit("stablehlo.reshape", (self.dim_value(d),), one) for d in shape]
        return self.emit(
            "stablehlo.concatenate", parts, tensor_type((len(shape),), np.dtype(np.int32)), dimension=0
        )


_CALLBACK_TARGETS = {
    "cpu": "xla_ffi_python_cpu_callback",
    "cuda": "xla_ffi_python_gpu_callback",
    "rocm": "xla_ffi_python_gpu_callback",
}


def _checked_callback(function: Callable, wanted: Sequence[Any], takes_token: bool) -> Callable:
    """What XLA calls: it trusts number, shapes and dtypes of the results, so they are checked here."""
    types_of_results = [(tuple(t.shape), types.dtype_of(t.element_type)) for t in wanted]

    def call(*arrays):
        out = tuple(function(*arrays[1:] if takes_token else arrays))
        if len(out) != len(types_of_results):
            raise ValueError(f"a callback returned {len(out)} results, {len(types_of_results)} are expected")
        checked = []
        for i, (value, (shape, dtype)) in enumerate(zip(out, types_of_results)):
            value = np.asarray(value)
            if value.shape != shape or value.dtype != dtype:
                raise ValueError(
                    f"result {i} of a callback is {value.dtype}{list(value.shape)}, {dtype}{list(shape)} is expected"
                )
            checked.append(value)
        return (None, *checked) if takes_token else tuple(checked)

    return call


def result_count(result_types) -> int:
    return len(result_types) if isinstance(result_types, (list, tuple)) else 1


def _aliases(aliases):
    return aliases.items() if isinstance(aliases, dict) else aliases


def _comparison_kind(dtype) -> str:
    if dtypes.is_inexact(dtype):
        return "FLOAT"
    return "SIGNED" if dtypes.is_signed_integer(dtype) else "UNSIGNED"


def _sizes(shape) -> list[int]:
    return [d if type(d) is int else int(d) if dims.is_constant_dim(d) else types.DYNAMIC for d in shape]


def _layouts(given, tensor_types) -> Any:
    given = [None] * len(tensor_types) if given is None else given
    found = []
    for order, t in zip(given, tensor_types, strict=True):
        if order is None:
            order = () if t == types.token_type else tuple(range(t.rank - 1, -1, -1))
        found.append(types.layout(order))
    return ir.ArrayAttr.get(found, _context)


_traced: dict[Any, tuple] = {}


def traced(fun: Callable, avals: tuple, kwargs: dict) -> tuple[Jaxpr, bool]:
    """The jaxpr of ``fun(*avals, **kwargs)``, and whether it returns a single array."""
    from bedrax.core.staging import trace_to_jaxpr

    key = (fun, avals, tuple(kwargs.items()), config.trace_context())
    try:
        found = _traced.get(key)
    except TypeError:
        key = found = None
    if found is not None:
        return found

    def flat(*args):
        out = fun(*args, **kwargs)
        many = isinstance(out, (list, tuple))
        return (list(out) if many else [out]), not many

    jaxpr, single = trace_to_jaxpr(flat, avals)
    found = (jaxpr, single)
    if key is not None and not jaxpr.consts:
        if len(_traced) > 4096:
            _traced.clear()
        _traced[key] = found
    return found
