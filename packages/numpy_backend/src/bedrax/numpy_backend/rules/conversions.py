"""NumPy evaluation of conversions between dtypes."""

from __future__ import annotations

import numpy as np

from bedrax.core import dtypes
from bedrax.lax.primitives import conversions as p
from bedrax.numpy_backend.numbers import convert, narrow
from bedrax.numpy_backend.rules.elementwise import checked
from bedrax.numpy_backend.tables import Exactness, exact_rules, numpy_rules, source_rules

numpy_rules.add(p.convert_element_type_p, lambda x, *, new_dtype, weak_type: convert(x, new_dtype))


@source_rules.rule(p.convert_element_type_p)
def _convert_source(write, eqn, x):
    source, target = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    if source == target:
        return x
    if not dtypes.is_native(source) or not dtypes.is_native(target) or target == np.bool_ or source.kind == "c":
        return None
    if source.kind == "f" and target.kind != "f" and target.kind != "c":
        return None  # saturates
    return f"{x}.astype(np.{target.name})"


def _unpack(x: np.ndarray) -> np.ndarray:
    """Bits of each element along a new last axis, low bits first."""
    bits = dtypes.itemsize_bits(x.dtype)
    raw = np.ascontiguousarray(x)[..., None].view(np.uint8)
    if np.little_endian is False:
        raw = raw[..., ::-1]
    return np.unpackbits(raw, axis=-1, bitorder="little")[..., :bits]


def _pack(bits: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The inverse of `_unpack`."""
    raw = np.packbits(bits, axis=-1, bitorder="little")
    if dtypes.issubdtype(dtype, np.signedinteger) and dtypes.itemsize_bits(dtype) < 8:
        # ml_dtypes keeps narrow integers sign-extended in a byte.
        return narrow(raw[..., 0].astype(np.int32), dtype)
    if np.little_endian is False:
        raw = raw[..., ::-1]
    return np.ascontiguousarray(raw).view(dtype)[..., 0]


@numpy_rules.rule(p.bitcast_convert_type_p)
def _bitcast(x, *, new_dtype):
    if x.dtype == new_dtype:
        return x
    shape = checked(p.bitcast_convert_type_p, x, new_dtype=new_dtype).shape
    old_bits, new_bits = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    if old_bits == new_bits >= 8:
        return x.view(new_dtype)
    bits = _unpack(x)
    if old_bits != new_bits:
        bits = bits.reshape(*shape, new_bits)
    return _pack(bits, new_dtype).reshape(shape)


@numpy_rules.rule(p.reduce_precision_p)
def _reduce_precision(x, *, exponent_bits, mantissa_bits):
    checked(p.reduce_precision_p, x, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)
    dtype = x.dtype
    if not dtypes.is_native(dtype):
        # The bits of a bfloat16 are the upper ones of a float32. XLA takes those of a float16 for narrower floats.
        carrier = np.float32 if dtype.itemsize == 2 else np.float16
        return _round_bits(x.astype(carrier), exponent_bits, mantissa_bits).astype(dtype)
    return _round_bits(x, exponent_bits, mantissa_bits)


def _round_bits(x, exponent_bits, mantissa_bits):
    dtype = x.dtype
    info = np.finfo(dtype)
    total = dtype.itemsize * 8
    unsigned = np.dtype(f"u{dtype.itemsize}").type
    bits = np.ascontiguousarray(x).view(unsigned).reshape(x.shape)
    if mantissa_bits < info.nmant:
        dropped = info.nmant - mantissa_bits
        # Round half to even: add just below half, plus one if the last kept bit is odd.
        odd = (bits >> unsigned(dropped)) & unsigned(1)
        bits = bits + (unsigned((1 << (dropped - 1)) - 1) + odd)
        bits = bits & unsigned(~((1 << dropped) - 1) & ((1 << total) - 1))
    if exponent_bits < info.nexp:
        sign = bits & unsigned(1 << (total - 1))
        exponent = bits & unsigned(((1 << info.nexp) - 1) << info.nmant)
        bias, small_bias = (1 << (info.nexp - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        infinity = unsigned(((1 << info.nexp) - 1) << info.nmant)
        bits = np.where(exponent > unsigned((bias + small_bias) << info.nmant), sign | infinity, bits)
        bits = np.where(exponent <= unsigned((bias - small_bias) << info.nmant), sign, bits)
    out = np.asarray(bits, unsigned).view(dtype)
    return np.where(np.isnan(x), x, out)


@exact_rules.rule(p.convert_element_type_p)
def _convert_is_exact(types, *, new_dtype, **_):
    old, new = types[0].dtype, new_dtype
    if old == new or (old.kind in "iub" and new.kind in "iub") or old.kind == "b":
        return Exactness.BITS
    if old.kind in "iu":
        return Exactness.BITS if new in (np.float32, np.float64) else None
    if old.kind == "f" and new.kind in "iub":
        return Exactness.NORMAL
    floats = dtypes.issubdtype(old, np.floating) and dtypes.issubdtype(new, np.floating)
    return Exactness.ROUNDED if floats else None  # compilers skip pairs of conversions of floats


@exact_rules.rule(p.bitcast_convert_type_p)
def _bitcast_is_exact(types, *, new_dtype):
    return Exactness.BITS if types[0].dtype.itemsize == new_dtype.itemsize else None
