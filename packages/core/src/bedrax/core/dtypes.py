"""Types of elements: names, kinds, and the 32/64-bit mode.

A dtype is a `numpy.dtype` (those of ml_dtypes included) or an `ExtendedDType`, e.g. that of PRNG keys. A value may be
*weakly typed*: Python scalars are, and so are results that depend on nothing else.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

import ml_dtypes
import numpy as np

from bedrax.core import blame, config, source

DType = np.dtype

# ---- The types ---------------------------------------------------------------------------------------------------

# Scalar types that NumPy lacks; each is a class, np.dtype(cls) its dtype.
bfloat16 = ml_dtypes.bfloat16
float4_e2m1fn = ml_dtypes.float4_e2m1fn
float6_e2m3fn = ml_dtypes.float6_e2m3fn
float6_e3m2fn = ml_dtypes.float6_e3m2fn
float8_e3m4 = ml_dtypes.float8_e3m4
float8_e4m3 = ml_dtypes.float8_e4m3
float8_e4m3b11fnuz = ml_dtypes.float8_e4m3b11fnuz
float8_e4m3fn = ml_dtypes.float8_e4m3fn
float8_e4m3fnuz = ml_dtypes.float8_e4m3fnuz
float8_e5m2 = ml_dtypes.float8_e5m2
float8_e5m2fnuz = ml_dtypes.float8_e5m2fnuz
float8_e8m0fnu = ml_dtypes.float8_e8m0fnu
int1 = ml_dtypes.int1
int2 = ml_dtypes.int2
int4 = ml_dtypes.int4
uint1 = ml_dtypes.uint1
uint2 = ml_dtypes.uint2
uint4 = ml_dtypes.uint4

# The type of tangents of integers and booleans: it has no content.
float0: np.dtype = np.dtype([("float0", np.void, 0)])


def _dtypes(*types: Any) -> tuple[np.dtype, ...]:
    return tuple(np.dtype(t) for t in types)


bool_dtype: Final = np.dtype(np.bool_)
narrow_int_dtypes: Final = _dtypes(int1, int2, int4, uint1, uint2, uint4)
narrow_float_dtypes: Final = _dtypes(
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
)
signed_dtypes: Final = _dtypes(int1, int2, int4, np.int8, np.int16, np.int32, np.int64)
unsigned_dtypes: Final = _dtypes(uint1, uint2, uint4, np.uint8, np.uint16, np.uint32, np.uint64)
integer_dtypes: Final = signed_dtypes + unsigned_dtypes
float_dtypes: Final = (*narrow_float_dtypes, *_dtypes(bfloat16, np.float16, np.float32, np.float64))
complex_dtypes: Final = _dtypes(np.complex64, np.complex128)
all_dtypes: Final = (bool_dtype, *integer_dtypes, *float_dtypes, *complex_dtypes)

# Abstract kind of every type above; NumPy has no kinds for those of ml_dtypes.
_KIND: dict[np.dtype, type] = (
    {bool_dtype: np.bool_}
    | dict.fromkeys(signed_dtypes, np.signedinteger)
    | dict.fromkeys(unsigned_dtypes, np.unsignedinteger)
    | dict.fromkeys(float_dtypes, np.floating)
    | dict.fromkeys(complex_dtypes, np.complexfloating)
)

_BITS: dict[np.dtype, int] = {d: d.itemsize * 8 for d in all_dtypes} | {
    np.dtype(t): bits
    for bits, types in {
        1: (int1, uint1),
        2: (int2, uint2),
        4: (int4, uint4, float4_e2m1fn),
        6: (float6_e2m3fn, float6_e3m2fn),
    }.items()
    for t in types
}

_SHORT: dict[np.dtype, str] = {
    d: d.name.replace("uint", "u")
    .replace("int", "i")
    .replace("bfloat", "bf")
    .replace("float", "f")
    .replace("complex", "c")
    for d in all_dtypes
} | {bool_dtype: "bool", float0: "float0"}


class extended(np.generic):
    """Kind of all element types that NumPy has no storage for. Only for `issubdtype`.

    Examples:

      >>> jnp.issubdtype(jax.random.key(0).dtype, jax.dtypes.extended)
      True
    """


class prng_key(extended):
    """Kind of PRNG key types: `issubdtype(keys.dtype, prng_key)`.

    Examples:

      >>> jax.dtypes.issubdtype(jax.random.key(0).dtype, jax.dtypes.prng_key)
      True
    """


class ExtendedDType:
    """Base class of element types that stand for several numbers each, e.g. PRNG keys.

    Subclasses are hashable and define `name`, `type` (a subclass of `extended`) and `itemsize`. They define the
    representation of their arrays: `element_shape`, `element_dtype`, ``physical_value(x)`` (the base of an
    array), ``from_physical(base, aval)``; and ``filled(shape, value)``, whose elements consist of one number.
    """

    type: type
    name: str
    itemsize: int = 0

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


class TypePromotionError(ValueError):
    """Raised when types have no implicit common type.

    It happens with narrow floats and integers (whose conversions are rarely intended), and with any two different
    types under ``jax_numpy_dtype_promotion='strict'``::

        jnp.zeros(3, jnp.int4) + jnp.zeros(3, jnp.int8)                    # raises TypePromotionError
        jnp.zeros(3, jnp.int4).astype(jnp.int8) + jnp.zeros(3, jnp.int8)   # an explicit conversion

    Examples:

      >>> with jax.numpy_dtype_promotion("strict"):
      ...     try:
      ...         jnp.ones(2, jnp.float32) + jnp.ones(2, jnp.int32)
      ...     except jax.dtypes.TypePromotionError:
      ...         print("an explicit astype is required")
      ...
      an explicit astype is required
    """


class ExtendedPromotionError(TypePromotionError, TypeError):
    """Raised when an operation combines an extended dtype, such as that of keys, with another dtype.

    Upstream raises TypeError for arithmetic, and ValueError for a conversion. This class is both.

    Examples:

      >>> try:
      ...     jax.random.key(0) + 1
      ... except TypeError:
      ...     print("use jax.random.fold_in")
      ...
      use jax.random.fold_in
    """


# ---- Reading dtypes ------------------------------------------------------------------------------------------------

python_scalar_types: Final = (bool, int, float, complex)
_PYTHON_DTYPES = {
    bool: (bool_dtype, bool_dtype),
    int: _dtypes(np.int32, np.int64),
    float: _dtypes(np.float32, np.float64),
    complex: _dtypes(np.complex64, np.complex128),
}
_NARROWED = dict(
    zip(
        _dtypes(np.int64, np.uint64, np.float64, np.complex128),
        _dtypes(np.int32, np.uint32, np.float32, np.complex64),
        strict=True,
    )
)
_x64 = config.enable_x64


def is_python_scalar(x: Any) -> bool:
    """Return whether `x` is a bool, int, float or complex of Python (np.float64 is not one)."""
    return isinstance(x, python_scalar_types) and not isinstance(x, np.generic)


def python_scalar_dtype(scalar_type: type, x64: bool | None = None) -> np.dtype:
    """Return the dtype of Python's `bool`, `int`, `float` or `complex` in a mode, by default in the current one."""
    return _PYTHON_DTYPES[scalar_type][_x64.value if x64 is None else x64]


def check_python_int(x: int) -> None:
    """Raise OverflowError if the Python int does not fit into the default integer type."""
    limit = 63 if _x64.value else 31
    if not -(1 << limit) <= x < (1 << limit):
        name = python_scalar_dtype(int).name
        advice = "" if _x64.value else ", turn on jax_enable_x64,"
        raise OverflowError(
            f"Python int {x} too large to convert to {name}: give it a type with np.uint32 or np.float32{advice} or "
            "keep it out of the traced arguments (static_argnums)"
        )


def default_int_dtype() -> np.dtype:
    return _PYTHON_DTYPES[int][_x64.value]


def default_uint_dtype() -> np.dtype:
    return canonicalize_dtype(np.uint64)


def default_float_dtype() -> np.dtype:
    return _PYTHON_DTYPES[float][_x64.value]


def default_complex_dtype() -> np.dtype:
    return _PYTHON_DTYPES[complex][_x64.value]


def as_dtype(x: Any) -> np.dtype | ExtendedDType:
    """Return the dtype of `x`: a name, a scalar type, a dtype, or an object with a `.dtype`.

    Python's scalar types give their default in the current mode. Other types are not narrowed.

    Raises:
      TypeError: `x` is not a dtype.
    """
    if isinstance(x, (np.dtype, ExtendedDType)):
        return x
    if isinstance(x, type):
        if x in _PYTHON_DTYPES:
            return python_scalar_dtype(x)
    else:
        dtype = getattr(x, "dtype", None)
        if isinstance(dtype, (np.dtype, ExtendedDType)):
            return dtype
        if x is None:
            return default_float_dtype()
    if isinstance(x, str):
        named = _BY_NAME.get(x)
        if named is not None:
            return named
    dtype = getattr(x, "dtype", None)  # a class with a dtype of its own, e.g. jnp.float32
    if isinstance(dtype, np.dtype):
        return dtype
    if isinstance(x, (list, tuple, dict)):
        raise TypeError(f"{x!r} is not a dtype: arrays have no structured elements")
    return np.dtype(x)


_BY_NAME = {d.name: d for d in all_dtypes} | {"float0": float0}


def _canonical_tables() -> tuple[dict, dict]:
    same = {d: d for d in (*all_dtypes, float0)}
    tables = (same | _NARROWED, dict(same))
    for x64, table in enumerate(tables):
        for d in all_dtypes:
            table[d.type] = table[d.name] = table[d]
        for t, pair in _PYTHON_DTYPES.items():
            table[t] = pair[x64]
    return tables


_CANONICAL = _canonical_tables()  # the most common spellings, narrowed or not; others are added at first use


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """Return the dtype for `dtype` in the current mode: without x64, 64-bit types become 32-bit types.

    Args:
      dtype: anything `as_dtype` accepts.
      allow_extended_dtype: let extended dtypes through unchanged, instead of an error.

    Examples:

      >>> jax.dtypes.canonicalize_dtype(np.float64)
      dtype('float32')
    """
    table = _CANONICAL[_x64.value if _x64.may_be_local else _x64.global_value]
    try:
        found = table.get(dtype)
    except TypeError:  # unhashable
        found = None
    if found is not None:
        return found
    parsed = as_dtype(dtype)
    if isinstance(parsed, ExtendedDType):
        if not allow_extended_dtype:
            raise ValueError(f"a numeric dtype is needed here, got the extended dtype {parsed}")
        return parsed
    if not parsed.isnative:
        parsed = parsed.newbyteorder("=")  # readers of arrays convert the order of bytes
    result = table.get(parsed, parsed)
    if isinstance(dtype, (np.dtype, str)) or (isinstance(dtype, type) and parsed in table):
        table[dtype] = result
    return result


def check_user_dtype_supported(dtype: Any, where: str | None = None) -> None:
    """Warn (or raise, see ``jax_explicit_x64_dtypes``) if `dtype`, given by the user, will be narrowed.

    Python's `int`, `float` and `complex` mean "the default", and never warn.

    Args:
      dtype: as the user wrote it.
      where: name of the public function with this argument.
    """
    if _x64.value or (isinstance(dtype, type) and dtype in _PYTHON_DTYPES) or dtype is None:
        return
    requested = as_dtype(dtype)
    narrowed = _NARROWED.get(requested) if isinstance(requested, np.dtype) else None
    if narrowed is None:
        return
    mode = config.explicit_x64_dtypes.value
    if mode == "allow":
        return
    place = f", requested in {where}," if where else ""
    how = "Set the option jax_enable_x64, or the environment variable JAX_ENABLE_X64, to have 64-bit types."
    if mode == "error":
        raise ValueError(f"{requested.name}{place} is not available. {how}")
    warnings.warn(
        f"{requested.name}{place} is not available: {narrowed.name} is taken. {how}",
        UserWarning,
        stacklevel=source.stacklevel(),
    )


def explicit_dtype(dtype: Any, where: str | None = None) -> Any:
    """Return the canonical dtype for a `dtype` of the user, with the warning of `check_user_dtype_supported`.

    Under ``jax_explicit_x64_dtypes='allow'`` the dtype is kept. Extended dtypes are unchanged.
    """
    if isinstance(dtype, np.dtype) and dtype in _KIND and dtype not in _NARROWED:
        return dtype
    if not _x64.value:
        check_user_dtype_supported(dtype, where)
        if config.explicit_x64_dtypes.value == "allow":
            return as_dtype(dtype)
    return canonicalize_dtype(dtype, allow_extended_dtype=True)


# ---- Asking about dtypes -------------------------------------------------------------------------------------------


# These take the dtypes of values; `issubdtype` takes any spelling.
def is_extended(dtype: Any) -> bool:
    return isinstance(dtype, ExtendedDType)


def is_bool(dtype: Any) -> bool:
    return dtype == bool_dtype


def is_integer(dtype: Any) -> bool:
    """Return whether it is a signed or unsigned integer type (bool is not)."""
    return _KIND.get(dtype) in (np.signedinteger, np.unsignedinteger)


def is_signed_integer(dtype: Any) -> bool:
    return _KIND.get(dtype) is np.signedinteger


def is_unsigned_integer(dtype: Any) -> bool:
    return _KIND.get(dtype) is np.unsignedinteger


def is_floating(dtype: Any) -> bool:
    """Return whether it is a real floating type."""
    return _KIND.get(dtype) is np.floating


def is_complex(dtype: Any) -> bool:
    return _KIND.get(dtype) is np.complexfloating


is_inexact: Final = frozenset((*float_dtypes, *complex_dtypes)).__contains__
"""Whether a dtype is a floating or complex type: these have derivatives."""


def is_native(dtype: np.dtype) -> bool:
    """Return whether NumPy has arithmetic for the dtype: those of ml_dtypes and `float0` have none.

    `isbuiltin` is 1 only for one object of each dtype. The dtype of an array that was unpickled is another object.
    """
    return dtype.num < 256 and dtype.kind in "biufc"  # registered dtypes have greater numbers


def _is_kind(x: Any) -> bool:
    return (
        isinstance(x, type)
        and issubclass(x, np.generic)
        and (
            x
            in (
                np.generic,
                np.number,
                np.integer,
                np.signedinteger,
                np.unsignedinteger,
                np.inexact,
                np.floating,
                np.complexfloating,
                np.flexible,
                np.character,
            )
            or issubclass(x, extended)
        )
    )


_issubdtype_cache: dict[tuple[Any, ...], bool] = {}


def issubdtype(a: Any, b: Any) -> bool:
    """Return whether `a` is `b` or of the kind `b`: `numpy.issubdtype` extended by the types of this module.

    Args:
      a: a dtype, or a kind such as `np.floating` or `prng_key`.
      b: the same. bfloat16 and the narrow floats are `np.floating`, int4 and its like `np.integer`, keys `prng_key`,
        which are `extended`.

    Examples:

      >>> jax.dtypes.issubdtype(jnp.bfloat16, jnp.floating)
      True
    """
    try:
        return _issubdtype_cache[a, b]
    except (KeyError, TypeError):
        pass
    result = _issubdtype(a, b)
    # Cached only if the answer does not depend on the mode (Python scalar types are those of NumPy here).
    if isinstance(b, type) and (
        isinstance(a, (np.dtype, ExtendedDType)) or (isinstance(a, type) and issubclass(a, np.generic))
    ):
        _issubdtype_cache[a, b] = result
    return result


def _numpy_dtype(x: Any) -> Any:
    # Here `float` is float64 in every mode, as in NumPy.
    if x is None or (isinstance(x, type) and x in _PYTHON_DTYPES):
        return np.dtype(x)
    return as_dtype(x)


def _issubdtype(a: Any, b: Any) -> bool:
    if not _is_kind(a):
        a = _numpy_dtype(a)
        if isinstance(a, ExtendedDType):
            if _is_kind(b):
                return issubclass(a.type, b)
            return a == (b if isinstance(b, type) else _numpy_dtype(b))
        if _is_kind(b):
            return issubclass(_KIND.get(a, a.type), b)
        if a not in _KIND and isinstance(b, type):
            return bool(np.issubdtype(a, b))
        return a == _numpy_dtype(b)
    return _is_kind(b) and issubclass(a, b)


def scalar_type_of(x: Any) -> type:
    """Return the Python type for `x`, a value or a dtype: `bool`, `int`, `float` or `complex`.

    Raises:
      TypeError: there is none.

    Examples:

      >>> jax.dtypes.scalar_type_of(jnp.int8(3))
      <class 'int'>
    """
    if isinstance(x, python_scalar_types) and not isinstance(x, np.generic):
        return next(t for t in python_scalar_types if isinstance(x, t))
    dtype = _dtype_only(x)
    kind = _KIND.get(dtype) if isinstance(dtype, np.dtype) else None
    if kind is None:
        raise TypeError(f"{x!r} of dtype {dtype} has no Python scalar type")
    return _SCALAR_OF_KIND[kind]


_SCALAR_OF_KIND = {
    np.bool_: bool,
    np.signedinteger: int,
    np.unsignedinteger: int,
    np.floating: float,
    np.complexfloating: complex,
}


def _dtype_only(x: Any) -> Any:
    if isinstance(x, (np.dtype, ExtendedDType)):
        return x
    dtype = getattr(x, "dtype", None)
    if isinstance(dtype, (np.dtype, ExtendedDType)):
        return dtype
    return as_dtype(x)


def has_numbers(dtype: np.dtype[Any]) -> bool:
    """Return whether elements of a NumPy dtype are numbers or booleans, in any order of bytes.

    Examples:

      >>> from bedrax.core import dtypes

      >>> [dtypes.has_numbers(np.dtype(d)) for d in (np.int8, ">f4", "U2", object)]
      [True, True, False, False]
    """
    return dtype in _KIND or (dtype.kind in "biufc" and dtype.newbyteorder("=") in _KIND) or dtype == float0


def itemsize_bits(dtype: Any) -> int:
    """Return the number of bits of an element: 4 for int4, though NumPy stores it in 8.

    Examples:

      >>> jax.dtypes.itemsize_bits(jnp.int4), jax.dtypes.itemsize_bits(jnp.float32)
      (4, 32)
    """
    bits = _BITS.get(dtype) if isinstance(dtype, np.dtype) else None
    if bits is None:
        dtype = _numpy_dtype(dtype)
        bits = _BITS.get(dtype) if isinstance(dtype, np.dtype) else None
    if bits is None:
        raise ExtendedPromotionError(f"elements of dtype {dtype} have no size in bits")
    return bits


def short_name(dtype: Any) -> str:
    """Return the name in printed programs: f32, bf16, i4, u8, c64, bool, key<fry>."""
    found = _SHORT.get(dtype)
    if found is not None:
        return found
    return getattr(dtype, "name", None) or str(dtype)


# Limits of an integer type: `min`, `max`, `bits`, `dtype`. These two are classes, which programs give to isinstance.
iinfo = ml_dtypes.iinfo
# Limits of a floating type (of the real part, for complex): `eps`, `max`, `tiny`..., as in `numpy.finfo`.
finfo = ml_dtypes.finfo


def as_integers(x: Any, dtype: np.dtype) -> np.ndarray:
    """Return floats as integers: cut towards zero, at most the limits of the dtype, and 0 for NaN.

    Compiled programs convert in this way. NumPy's result of a NaN, or of a number beyond the limits, depends on the machine.
    """
    info = iinfo(dtype)
    low, high = int(info.min), int(info.max)
    wide = np.asarray(x).astype(np.float64)  # exact for every float type
    # float(high) may round up to the first value out of range, hence >=.
    above, below, nan = wide >= float(high), wide <= float(low), np.isnan(wide)
    carrier = np.dtype(np.int64 if low < 0 else np.uint64)
    safe = np.where(above | below | nan, 0.0, wide).astype(carrier)
    out = np.where(above, carrier.type(high), np.where(below, carrier.type(low), safe))
    return out.astype(dtype) if is_native(dtype) else out.astype(np.int8).astype(dtype)


def to_inexact_dtype(dtype: Any) -> Any:
    """Return `dtype` if it is floating or complex; else float64 for 64-bit integers, and float32 for others and bool.

    64-bit integers exist in the 64-bit mode only.
    """
    dtype = canonicalize_dtype(dtype, allow_extended_dtype=True)
    if is_inexact(dtype) or issubdtype(dtype, np.inexact):
        return dtype
    if not isinstance(dtype, np.dtype) or dtype not in _KIND:
        raise TypeError(f"there is no inexact dtype for {dtype}; a boolean or numeric dtype is needed")
    return _FLOATS[dtype.itemsize == 8]


def to_complex_dtype(dtype: Any) -> Any:
    """Return the complex type that holds values of `dtype`: complex128 for float64 and complex128, else complex64.

    Integers and booleans become floats first.
    """
    dtype = to_inexact_dtype(dtype)
    return np.dtype(np.complex128 if dtype in (np.float64, np.complex128) else np.complex64)


def to_real_dtype(dtype: Any) -> Any:
    """Return the type of the real part: float32 for complex64, float64 for complex128, else `dtype` itself."""
    dtype = canonicalize_dtype(dtype, allow_extended_dtype=True)
    return _REAL_PART.get(dtype, dtype)


_FLOATS = _dtypes(np.float32, np.float64)
_REAL_PART = dict(zip(complex_dtypes, _dtypes(np.float32, np.float64), strict=True))


def dtype_of(x: Any) -> Any:
    """Return the canonical dtype of a value: an array, a NumPy value, or a Python scalar.

    Raises:
      TypeError: `x` is none of these.
    """
    found = _PYTHON_DTYPES.get(type(x))
    if found is not None:
        return found[_x64.value]
    dtype = getattr(x, "dtype", None)
    if isinstance(dtype, ExtendedDType):
        return dtype
    if isinstance(dtype, np.dtype) and not isinstance(x, type):
        return _CANONICAL[_x64.value].get(dtype, dtype)
    if is_python_scalar(x):
        return python_scalar_dtype(scalar_type_of(x))
    if hasattr(x, "__jax_array__"):  # a symbolic dimension
        return dtype_of(x.__jax_array__())
    raise blame.not_an_array(x, f"Cannot determine dtype of {x!r}: an array or a scalar is needed", otherwise=True)
