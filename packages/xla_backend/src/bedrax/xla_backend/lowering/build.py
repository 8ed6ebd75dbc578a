"""Builders of StableHLO operations: constants, shapes, and helpers for the usual operations.

A `Block` is an insertion point; a `Builder` appends operations to it. This module does not depend on jaxprs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.core import dims, dtypes
from bedrax.core.avals import ShapedArray, aval_of, check_value
from bedrax.core.exact import exact
from bedrax.xla_backend.lowering import types
from bedrax.xla_backend.lowering.types import ir, tensor_type, type_of

_create = ir.Operation.create
_I32 = np.dtype(np.int32)
_NO_DIMENSIONS = {"broadcast_dimensions": types.attribute(())}


def _constant(attribute, ip) -> Any:
    return _create(
        "stablehlo.constant", [attribute.type], attributes={"value": attribute}, loc=types.unknown, ip=ip
    ).result


class Block:
    """An insertion point for operations."""

    __slots__ = ("constants", "ip", "program", "tokens")

    def __init__(self, program: Any, ip: Any, tokens: dict[Any, Any] | None = None) -> None:
        self.program: Any = program
        self.ip: Any = ip
        self.constants: dict[Any, Any] = {}
        self.tokens: dict[Any, Any] = {} if tokens is None else tokens

    def constant(self, value: Any, dtype: np.dtype) -> Any:
        """A rank-0 constant; one operation per value and block."""
        key = (value.dtype, value.tobytes(), dtype) if isinstance(value, np.generic) else (exact(value), dtype)
        found = self.constants.get(key)
        if found is None:
            attribute = types.splat(value, dtype, ())
            found = self.constants[key] = _constant(attribute, self.ip)
        return found


def array_constant(block: Block, x: Any, aval: ShapedArray) -> Any:
    """A constant with the value of `x`, an array or a scalar of type `aval`."""
    if not aval.is_array:
        return _create("stablehlo.create_token", results=[types.token_type()], loc=types.unknown, ip=block.ip).result
    shape, dtype = types.physical(aval)
    if dtype.kind == "V" and dtype.itemsize == 0 or dtype.name == "float0":
        attribute = types.splat(False, np.dtype(bool), tuple(shape))
    else:
        if not isinstance(aval.dtype, np.dtype):
            x = aval.dtype.physical_value(x)
        check_value(x)
        value = np.asarray(x)
        if value.dtype != dtype:
            value = value.astype(dtype)
        if not value.shape:
            return block.constant(value[()], dtype)
        attribute = types.dense(value)
    return _constant(attribute, block.ip)


class Builder:
    """Appends operations to a block of a program.

    Attributes:
      block, location: the insertion point, and the source location of the operations.
      program: the module under construction.
    """

    __slots__ = ("block", "location", "program")

    def __init__(self, block: Block, location: Any = types.unknown) -> None:
        self.block: Block = block
        self.program: Any = block.program
        self.location: Any = location

    parse: staticmethod[..., Any] = staticmethod(types.parse)
    i32: staticmethod[..., Any] = staticmethod(types.i32)
    i64: staticmethod[..., Any] = staticmethod(types.i64)
    attribute: staticmethod[..., Any] = staticmethod(types.attribute)
    symbol: staticmethod[..., Any] = staticmethod(types.symbol)
    type_of: staticmethod[..., Any] = staticmethod(type_of)
    tensor_type: staticmethod[..., Any] = staticmethod(tensor_type)
    i32_type: Any = types.i32_type
    i64_type: Any = types.i64_type

    @property
    def token_type(self) -> Any:
        return types.token_type()

    is_static: staticmethod[..., Any] = staticmethod(dims.is_constant_shape)

    def own_results(self) -> tuple[list[Any], bool]:
        """The result types of an operation without given ones, and whether there is a single one."""
        raise TypeError("an operation outside of equations needs the types of its results")

    # ---- making operations ----

    def emit(
        self,
        name: str,
        operands: Sequence[Any],
        /,
        result_types: Any = None,
        regions: Sequence[Any] = (),
        **attributes: Any,
    ) -> Any:
        """Append one operation and return its value, or a list of values.

        Args:
          result_types: a type or aval: returns one value; a list: returns a list; None: the types of the equation.
          regions: see `region`.
          attributes: Python values, converted by `types.attribute`. None omits an attribute.
        """
        if result_types is None:
            results, single = self.own_results()
        elif type(result_types) is list or type(result_types) is tuple:
            results = [type_of(t) for t in result_types]
            single = False
        else:
            results = [type_of(result_types)]
            single = True
        converted = None
        if attributes:
            convert = types.attribute
            converted = {}
            for k, v in attributes.items():
                if v is not None:
                    converted[k] = convert(v)
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
    def region(arg_types: Any, body: Any) -> tuple[Any, ...]:
        """A region for `emit`: argument types, and a function from block arguments to results."""
        return arg_types, body

    def reducer_region(self, name: str, dtype: np.dtype[Any]) -> tuple[Any, ...]:
        """The region ``(x, y) -> name(x, y)`` on rank-0 tensors."""
        scalar = tensor_type((), np.dtype(dtype))
        return (scalar, scalar), lambda x, y: self.emit(name, (x, y), scalar)

    # ---- values ----

    def shape(self, v: Any) -> tuple[Any, ...]:
        """The shape of a value. Symbolic dimensions are known only for operands and results of equations."""
        return self.program.shapes.get(v) or tuple(v.type.shape)

    @staticmethod
    def dtype(v: Any) -> np.dtype:
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
        """An array of `shape` (which may be symbolic), filled with `x`."""
        dtype = np.dtype(dtype)
        shape = tuple(shape)
        if not dims.is_constant_shape(shape):
            return self.broadcast_in_dim(self.constant(x, dtype), shape, ())
        if not shape:
            return self.constant(x, dtype)
        return self.emit("stablehlo.constant", (), tensor_type(shape, dtype), value=types.splat(x, dtype, shape))

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
            return self.spread(scalar, types.ranked(v.type.shape, scalar.type.element_type))
        return self.emit(
            "stablehlo.dynamic_broadcast_in_dim", (scalar, self.sizes_of(v)), v.type, broadcast_dimensions=()
        )

    def vector(self, scalars: Sequence[Any]) -> Any:
        """Rank-0 values of type i32 as a rank-1 value."""
        parts = [self.reshape(s, (1,)) for s in scalars]
        return self.emit("stablehlo.concatenate", parts, tensor_type((len(parts),), _I32), dimension=0)

    def sizes_of(self, v: Any) -> Any:
        """The shape of a value as a rank-1 i32 value."""
        if v.type.has_static_shape:
            return self.shape_tensor(tuple(v.type.shape))
        scalar = tensor_type((), _I32)
        return self.vector(
            [self.emit("stablehlo.get_dimension_size", (v,), scalar, dimension=i) for i in range(v.type.rank)]
        )

    def convert(self, v: Any, dtype: Any) -> Any:
        """`v` with its elements converted by StableHLO's `convert`."""
        element = types.element_type(np.dtype(dtype))
        if v.type.element_type == element:
            return v
        return self.emit("stablehlo.convert", (v,), types.ranked(v.type.shape, element))

    def reshape(self, v: Any, shape: Sequence[Any], result: Any = None) -> Any:
        """`v` reshaped to `shape`, which may be symbolic. `result`: the type of the result, where it is known."""
        shape = tuple(shape)
        if result is None:
            result = types.ranked(_sizes(shape), v.type.element_type)
        if dims.is_constant_shape(shape):
            return v if result == v.type else self.emit("stablehlo.reshape", (v,), result)
        return self.emit("stablehlo.dynamic_reshape", (v, self.shape_tensor(shape)), result)

    def broadcast_in_dim(self, v: Any, shape: Sequence[Any], dimensions: Sequence[int], result: Any = None) -> Any:
        """`v` with its dimension i as dimension ``dimensions[i]`` of `shape`, which may be symbolic.

        Args:
          result: the type of the result, where it is known.
        """
        shape = tuple(shape)
        if result is None:
            result = types.ranked(_sizes(shape), v.type.element_type)
        if dims.is_constant_shape(shape):
            if len(dimensions) == len(shape) and result == v.type and tuple(dimensions) == tuple(range(len(shape))):
                return v
            return self.emit("stablehlo.broadcast_in_dim", (v,), result, broadcast_dimensions=tuple(dimensions))
        return self.emit(
            "stablehlo.dynamic_broadcast_in_dim",
            (v, self.shape_tensor(shape)),
            result,
            broadcast_dimensions=tuple(dimensions),
        )

    def spread(self, scalar: Any, result: Any) -> Any:
        """A rank-0 value broadcast to a type of static shape."""
        return _create(
            "stablehlo.broadcast_in_dim", [result], (scalar,), _NO_DIMENSIONS, None, 0, self.location, self.block.ip
        ).result

    def transpose(self, v: Any, permutation: Sequence[int], result: Any = None) -> Any:
        """`v` with its dimensions permuted. `result`: the type of the result, where it is known."""
        permutation = tuple(permutation)
        if permutation == tuple(range(len(permutation))):
            return v
        if result is None:
            sizes = v.type.shape
            result = types.ranked([sizes[i] for i in permutation], v.type.element_type)
        return self.emit("stablehlo.transpose", (v,), result, permutation=permutation)

    def slice(self, v: Any, starts: Sequence[Any], limits: Sequence[Any], strides: Sequence[int] | None = None) -> Any:
        """A slice. The bounds may be symbolic."""
        starts, limits = tuple(starts), tuple(limits)
        strides = (1,) * len(starts) if strides is None else tuple(strides)
        shape = tuple([dims.stride_dim(b - a, 1, s) for a, b, s in zip(starts, limits, strides, strict=True)])
        result = types.ranked(_sizes(shape), v.type.element_type)
        if all(map(dims.is_constant_shape, (starts, limits, strides))):
            return self.emit(
                "stablehlo.slice", (v,), result, start_indices=starts, limit_indices=limits, strides=strides
            )
        operands = (v, *(self.shape_tensor(t) for t in (starts, limits, strides)))
        return self.emit("stablehlo.real_dynamic_slice", operands, result)

    def window(self, v: Any, starts: Any, sizes: Sequence[Any], result: Any = None) -> Any:
        """A slice of symbolic `sizes` from a vector of computed starts, which are clamped.

        It is a gather of one window. Its sizes, unlike the bounds of a slice, are known as soon as the symbols are.
        """
        axes = list(range(len(sizes)))
        numbers = self.parse(f"#stablehlo.gather<offset_dims = {axes}, start_index_map = {axes}, index_vector_dim = 0>")
        operands = (v, starts, self.shape_tensor(tuple(sizes)))
        return self.emit(
            "stablehlo.dynamic_gather", operands, result, dimension_numbers=numbers, indices_are_sorted=True
        )

    def pad(
        self,
        v: Any,
        value: Any,
        low: Sequence[Any],
        high: Sequence[Any],
        interior: Sequence[int],
        shape: Sequence[Any] | None = None,
    ) -> Any:
        """Padding with the rank-0 `value`. Symbolic amounts pad to `shape` (default: the shape of the result)."""
        low, high, interior = tuple(low), tuple(high), tuple(interior)
        if all(dims.is_constant_shape(t) for t in (low, high)) and v.type.has_static_shape:
            shape = [
                n + a + b + max(n - 1, 0) * i for n, a, b, i in zip(v.type.shape, low, high, interior, strict=True)
            ]
            result = types.ranked(shape, v.type.element_type)
            return self.emit(
                "stablehlo.pad",
                (v, value),
                result,
                edge_padding_low=low,
                edge_padding_high=high,
                interior_padding=interior,
            )
        operands = (v, value, *(self.shape_tensor(t) for t in (low, high, interior)))
        result = None if shape is None else tensor_type(tuple(shape), self.dtype(v))
        return self.emit("stablehlo.dynamic_pad", operands, result)

    def compare(self, x: Any, y: Any, direction: str, kind: str | None = None, result: Any = None) -> Any:
        """Elementwise comparison: "EQ" "NE" "LT" "LE" "GT" "GE".

        Args:
          kind: "FLOAT", "TOTALORDER", "SIGNED" or "UNSIGNED"; by default that of the operands' dtype.
          result: the type of the result, where it is known; then the operands have its shape.
        """
        if kind is None:
            kind = comparison_kind(self.dtype(x))
        if result is None:
            x, y = self._same_shape(x, y)
            result = types.ranked(x.type.shape, types.i1_type)
        return self.emit(
            "stablehlo.compare",
            (x, y),
            result,
            comparison_direction=types.parse(f"#stablehlo<comparison_direction {direction}>"),
            compare_type=types.parse(f"#stablehlo<comparison_type {kind}>"),
        )

    def select(self, predicate: Any, x: Any, y: Any) -> Any:
        """`x` where `predicate` is true, else `y`. Rank-0 operands are broadcast."""
        x, y = self._same_shape(x, y)
        if predicate.type.rank and not x.type.rank:
            x, y = self._like(x, predicate), self._like(y, predicate)
        return self.emit("stablehlo.select", (predicate, x, y), x.type)

    def reduce(self, v: Any, init: Any, axes: Sequence[int], name: str) -> Any:
        """`v` reduced over `axes` with the binary operation `name`."""
        axes = tuple(axes)
        kept = [n for i, n in enumerate(v.type.shape) if i not in axes]
        element = v.type.element_type
        result = types.ranked(kept, element)
        scalar = types.ranked([], element)
        region = ((scalar, scalar), lambda x, y: self.emit(name, (x, y), scalar))
        return self.emit("stablehlo.reduce", (v, init), result, regions=(region,), dimensions=axes)

    def dim_value(self, d: Any) -> Any:
        """A dimension as a rank-0 i32 value."""
        if dims.is_constant_dim(d):
            return self.constant(int(d), np.int32)
        from bedrax.xla_backend.lowering import dimensions  # imports `shape_poly`, which most programs do not need

        return dimensions.value(self, d)

    def shape_tensor(self, shape: Sequence[Any]) -> Any:
        """A shape as a rank-1 i32 value."""
        shape = tuple(shape)
        if dims.is_constant_shape(shape):
            return self.constant(np.array(shape, np.int32).reshape(len(shape)))
        return self.vector([self.dim_value(d) for d in shape])


def comparison_kind(dtype: np.dtype) -> str:
    """The kind of the comparisons of elements of a dtype."""
    if dtypes.is_inexact(dtype):
        return "FLOAT"
    return "SIGNED" if dtypes.is_signed_integer(dtype) else "UNSIGNED"


def _sizes(shape) -> list[int]:
    return [d if type(d) is int else int(d) if dims.is_constant_dim(d) else types.DYNAMIC for d in shape]
