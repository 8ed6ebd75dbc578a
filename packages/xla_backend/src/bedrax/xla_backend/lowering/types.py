"""MLIR types, attributes and constants, converted from NumPy's and Python's, and cached.

A process has one MLIR context, so each cache is global.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from bedrax.core import dims, dtypes
from bedrax.core.avals import ShapedArray
from bedrax.core.exact import exact
from bedrax.xla_backend.door import mlir

_ml = mlir.load()
ir = _ml.ir
context = _ml.context
unknown: Final = ir.Location.unknown(context)
Type = ir.Type
Attribute = ir.Attribute
Value = ir.Value

_TOO_MANY = 2**59  # of at most 16 bytes each
DYNAMIC = ir.ShapedType.get_dynamic_size()

_SPELLING = {
    "bool": "i1",
    "int1": "i1",
    "int2": "i2",
    "int4": "i4",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint1": "ui1",
    "uint2": "ui2",
    "uint4": "ui4",
    "uint8": "ui8",
    "uint16": "ui16",
    "uint32": "ui32",
    "uint64": "ui64",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "float4_e2m1fn": "f4E2M1FN",
    "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
}

_elements: dict[Any, Type] = {}
_dtypes: dict[Any, np.dtype] = {}  # by spelling, and by element type
_tensors: dict[tuple[Any, ...], Type] = {}
_ranked: dict[tuple[Any, ...], Type] = {}

_MOST = 8192  # entries of each table by shapes, texts or values


def _kept(table: dict[Any, Any], key: Any, value: Any) -> Any:
    """The value, which the table keeps; a full table is emptied first."""
    if len(table) >= _MOST:
        table.clear()
    table[key] = value
    return value


def element_type(dtype: np.dtype) -> Type:
    """The MLIR type of one element."""
    found = _elements.get(dtype)
    if found is None:
        if dtype.kind == "V" and dtype.names is None and dtype.itemsize == 0 or dtype == _float0():
            spelling = "i1"
        else:
            spelling = _SPELLING.get(dtype.name)
        if spelling is None:
            raise TypeError(f"StableHLO has no element type for dtype {dtype}")
        found = _elements[dtype] = ir.Type.parse(spelling, context)
    return found


def _float0() -> np.dtype:
    return dtypes.float0


def dtype_of(element: Type) -> np.dtype:
    """The NumPy dtype of an element type."""
    found = _dtypes.get(element)
    if found is not None:
        return found
    if not _dtypes:
        import ml_dtypes

        for name, spelling in _SPELLING.items():
            cls = getattr(np, name + "_" if name == "bool" else name, None) or getattr(ml_dtypes, name, None)
            if cls is not None:
                _dtypes.setdefault(spelling, np.dtype(cls))
    found = _dtypes[element] = _dtypes[str(element)]
    return found


def ranked(sizes: Sequence[int], element: Type) -> Type:
    """A ranked tensor type.

    Raises:
      ValueError: a size is below 0, or there are too many elements. XLA would end the process for either.
    """
    key = (*sizes, element)
    found = _ranked.get(key)
    if found is None:
        found = _kept(_ranked, key, _checked(sizes, element))
    return found


def _checked(sizes: Sequence[int], element: Type) -> Type:
    known = [n for n in sizes if n != DYNAMIC]
    if any(n < 0 for n in known):
        raise ValueError(f"an array cannot have sizes below 0, got shape {tuple(known)}")
    if math.prod(n for n in known if n) >= _TOO_MANY:  # a size of 0 does not help: XLA multiplies the others
        raise ValueError(f"an array of shape {tuple(known)} has more elements than memory can address")
    return ir.RankedTensorType.get_unchecked(sizes, element, context=context)


def tensor_type(shape: Sequence[Any], dtype: np.dtype) -> Type:
    """A ranked tensor type. Symbolic dimensions become dynamic ones."""
    key = (shape, dtype)
    found = _tensors.get(key)
    if found is None:
        sizes = [d if type(d) is int else int(d) if dims.is_constant_dim(d) else DYNAMIC for d in shape]
        found = _kept(_tensors, key, ranked(sizes, element_type(dtype)))
    return found


@functools.cache
def token_type() -> Type:
    """The type of tokens, which order effects. The first call imports StableHLO's classes of operations."""
    return ir.Type.parse("!stablehlo.token", context)


def physical(aval: ShapedArray) -> tuple[tuple[Any, ...], np.dtype]:
    """Shape and dtype of the array that represents a value of type `aval`.

    An extended dtype has the shape and dtype of the representation of one element: `element_shape` and `element_dtype`.
    """
    dtype = aval.dtype
    if isinstance(dtype, np.dtype):
        return aval.shape, dtype
    return (*aval.shape, *dtype.element_shape), np.dtype(dtype.element_dtype)


_aval_types: dict[Any, Type] = {}  # by type, or by its token: a number needs no comparison in Python

# MLIR types of the IR's types, by class: ``aval -> type``. Libraries add their own classes.
type_handlers: dict[type, Callable[[Any], Type]] = {ShapedArray: lambda aval: tensor_type(*physical(aval))}


def type_of(x: Any) -> Type:
    """The MLIR type of an aval (or a type itself)."""
    if type(x) is ShapedArray:
        found = _aval_types.get(x.token or x)
    elif isinstance(x, Type):
        return x
    else:
        found = _aval_types.get(x)
    if found is None:
        handler = type_handlers.get(type(x))
        if handler is None:
            return tensor_type(*physical(x)) if x.is_array else token_type()
        found = handler(x)
        if not isinstance(found, Type):
            raise NotImplementedError(f"values of type {x} are one MLIR value each here; their handler gave {found!r}")
        if type(x) is ShapedArray:  # the handler of another class may be replaced
            _kept(_aval_types, x.token or x, found)  # an equal type may get a new token
    return found


# ---- attributes ----

_parsed: dict[str, Attribute] = {}
_converted: dict[Any, Attribute] = {}
i1_type: Any
i32_type: Any
i64_type: Any
i1_type, i32_type, i64_type = (ir.IntegerType.get_signless(bits, context) for bits in (1, 32, 64))
index_type: Final = ir.IndexType.get(context)
unit: Final = ir.UnitAttr.get(context)
no_attributes: Final = ir.DictAttr.get({}, context)


def parse(text: str) -> Attribute:
    """An attribute from its textual form."""
    found = _parsed.get(text)
    if found is None:
        mlir.load_dialects(text)
        found = _kept(_parsed, text, ir.Attribute.parse(text, context))
    return found


def i32(n: int) -> Attribute:
    """A 32-bit integer attribute."""
    return ir.IntegerAttr.get(i32_type, n)


def i64(n: int) -> Attribute:
    """A 64-bit integer attribute."""
    return ir.IntegerAttr.get(i64_type, n)


def string(text: str) -> Attribute:
    """A string attribute."""
    return ir.StringAttr.get(text, context)


def symbol(name: str) -> Attribute:
    """A reference to a function of the module."""
    return ir.FlatSymbolRefAttr.get(name, context)


def attribute(x: Any) -> Attribute:
    """A Python value as an attribute; the conversions are listed in the package's README."""
    if isinstance(x, Attribute):
        return x
    kind = type(x)
    if kind is tuple or kind is int or kind is bool or kind is str:
        try:
            key = (kind, x) if kind is not tuple else (kind, x, *map(type, x))
            found = _converted.get(key)
        except TypeError:
            return _convert(x, kind)
        if found is None:
            found = _kept(_converted, key, _convert(x, kind))
        return found
    return _convert(x, kind)


def _convert(x: Any, kind: type) -> Attribute:
    if kind is bool or kind is np.bool_:
        return ir.BoolAttr.get(bool(x), context)
    if kind is int or isinstance(x, np.integer):
        return i64(int(x))
    if kind is str:
        return string(x)
    if kind is float:
        return ir.FloatAttr.get(element_type(np.dtype(np.float32)), x, loc=unknown)
    if isinstance(x, (tuple, list)):
        if all(type(e) is int or isinstance(e, np.integer) for e in x):
            return ir.DenseI64ArrayAttr.get([int(e) for e in x], context)
        if all(type(e) is bool or type(e) is np.bool_ for e in x):
            return ir.DenseBoolArrayAttr.get([bool(e) for e in x], context)
        if all(dims.is_constant_dim(e) for e in x if not isinstance(e, (str, Attribute, tuple, list))) and not any(
            isinstance(e, (str, Attribute, tuple, list)) for e in x
        ):
            return ir.DenseI64ArrayAttr.get([int(e) for e in x], context)
        return ir.ArrayAttr.get([attribute(e) for e in x], context)
    if isinstance(x, dict):
        return ir.DictAttr.get({k: attribute(v) for k, v in x.items()}, context)
    if isinstance(x, (np.ndarray, np.generic)):
        return dense(np.asarray(x))
    if isinstance(x, Type):
        return ir.TypeAttr.get(x, context)
    raise TypeError(f"no MLIR attribute corresponds to {x!r} of type {kind}")


def ffi_attribute(x: Any) -> Attribute:
    """An attribute of a typed FFI call.

    Python's numbers have 64 bits, and NumPy scalars keep their type. An `IntEnum` is its number, a dtype a type. Arrays
    are dense elements; a sequence of one kind of Python numbers is a dense array of 64 bits (of booleans: of 1 bit).
    """
    if isinstance(x, (str, bytes)):
        return string(x if isinstance(x, str) else x.decode())
    if isinstance(x, np.generic):
        dtype = x.dtype
        if dtype.kind == "b":
            return ir.BoolAttr.get(bool(x), context)
        if dtype.kind in "iu":
            if x > np.iinfo(np.int64).max:  # the constructor takes signed numbers
                return ir.Attribute.parse(f"{int(x)} : {element_type(dtype)}", context)
            return ir.IntegerAttr.get(element_type(dtype), int(x))
        if dtype.kind == "f":
            return ir.FloatAttr.get(element_type(dtype), float(x), loc=unknown)
    if isinstance(x, dict):
        return ir.DictAttr.get({k: ffi_attribute(v) for k, v in x.items()}, context) if x else no_attributes
    if isinstance(x, float):
        return ir.FloatAttr.get(element_type(np.dtype(np.float64)), x, loc=unknown)
    if isinstance(x, int) and not isinstance(x, bool):
        return i64(int(x))
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        return ir.TypeAttr.get(element_type(np.dtype(x)), context)
    if isinstance(x, (tuple, list)):
        kinds = {type(e) for e in x}
        if kinds == {float}:
            with context:
                return ir.DenseF64ArrayAttr.get(list(x))
        if kinds <= {int} or kinds == {bool}:
            return attribute(tuple(x))
        return ir.ArrayAttr.get([ffi_attribute(e) for e in x], context)
    return attribute(x)


def dense(array: np.ndarray, shape: Sequence[int] | None = None) -> Attribute:
    """A dense elements attribute with the elements of `array`. With `shape`, the attribute is a splat."""
    dtype = array.dtype
    result = tensor_type(tuple(array.shape if shape is None else shape), dtype)
    buffer = np.ascontiguousarray(array)
    if shape is None and buffer.size > 1 and _is_splat(buffer):
        buffer = buffer.reshape(-1)[:1]
    kind = dtype.kind
    if kind == "b":
        buffer = buffer.astype(np.uint8)
    elif kind not in "iufc" or not dtypes.is_native(dtype):
        buffer = buffer.view(np.dtype(f"u{dtype.itemsize}")) if dtype.itemsize else buffer.astype(np.uint8)
    if buffer.ndim == 0:
        buffer = buffer.reshape(1)
    with context:
        return ir.DenseElementsAttr.get(buffer, type=result)


def _is_splat(array: np.ndarray) -> bool:
    flat = array.reshape(-1)
    first = flat[:1]
    if flat[-1:].tobytes() != first.tobytes():
        return False
    bits = flat.view(np.dtype(f"V{array.dtype.itemsize}")) if array.dtype.itemsize else flat
    return bool((bits == bits[0]).all())


_scalars: dict[tuple[Any, ...], Attribute] = {}


def splat(value: Any, dtype: np.dtype, shape: tuple[int, ...]) -> Attribute:
    """A dense elements attribute, filled with one value."""
    key = (exact(value[()] if type(value) is np.ndarray else value), dtype, shape)
    found = _scalars.get(key)
    if found is None:
        found = _kept(_scalars, key, dense(np.asarray(value).astype(dtype).reshape(1), shape))
    return found


def layout(minor_to_major: Sequence[int]) -> Attribute:
    """A layout of a custom call's operand or result."""
    array = np.array(list(minor_to_major), np.int64)
    with context:
        return ir.DenseIntElementsAttr.get(array, type=index_type)
