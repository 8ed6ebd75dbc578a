"""Implicit promotion: the common types of values."""

import itertools
import types

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedrax.core import config, dtypes

# The promotion table of https://docs.jax.dev/en/latest/type_promotion.html: with x64, standard mode.
HEADER = "b1 u1 u2 u4 u8 i1 i2 i4 i8 bf f2 f4 f8 c4 c8 i* f* c*"
TABLE = """
b1 b1 u1 u2 u4 u8 i1 i2 i4 i8 bf f2 f4 f8 c4 c8 i* f* c*
u1 u1 u1 u2 u4 u8 i2 i2 i4 i8 bf f2 f4 f8 c4 c8 u1 f* c*
u2 u2 u2 u2 u4 u8 i4 i4 i4 i8 bf f2 f4 f8 c4 c8 u2 f* c*
u4 u4 u4 u4 u4 u8 i8 i8 i8 i8 bf f2 f4 f8 c4 c8 u4 f* c*
u8 u8 u8 u8 u8 u8 f* f* f* f* bf f2 f4 f8 c4 c8 u8 f* c*
i1 i1 i2 i4 i8 f* i1 i2 i4 i8 bf f2 f4 f8 c4 c8 i1 f* c*
i2 i2 i2 i4 i8 f* i2 i2 i4 i8 bf f2 f4 f8 c4 c8 i2 f* c*
i4 i4 i4 i4 i8 f* i4 i4 i4 i8 bf f2 f4 f8 c4 c8 i4 f* c*
i8 i8 i8 i8 i8 f* i8 i8 i8 i8 bf f2 f4 f8 c4 c8 i8 f* c*
bf bf bf bf bf bf bf bf bf bf bf f4 f4 f8 c4 c8 bf bf c4
f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f2 f4 f8 c4 c8 f2 f2 c4
f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 c4 c8 f4 f4 c4
f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 c8 c8 f8 f8 c8
c4 c4 c4 c4 c4 c4 c4 c4 c4 c4 c4 c4 c4 c8 c4 c8 c4 c4 c4
c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8
i* i* u1 u2 u4 u8 i1 i2 i4 i8 bf f2 f4 f8 c4 c8 i* f* c*
f* f* f* f* f* f* f* f* f* f* bf f2 f4 f8 c4 c8 f* f* c*
c* c* c* c* c* c* c* c* c* c* c4 c4 c4 c8 c4 c8 c* c* c*
"""
WEAK = {"i*": 1, "f*": 1.0, "c*": 1j}
NAMES = dict(
    zip(
        HEADER.split()[:15],
        (
            "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 bfloat16 float16 float32 float64 complex64 complex128"
        ).split(),
        strict=True,
    )
)
X64 = {"int": "int64", "float": "float64", "complex": "complex128"}
wide = st.sampled_from([d for d in dtypes.all_dtypes if d not in dtypes.narrow_int_dtypes + dtypes.narrow_float_dtypes])
operand = st.one_of(
    wide.map(lambda d: (d, False)),
    st.sampled_from([np.dtype(t) for t in (int, float, complex)]).map(lambda d: (d, True)),
)


class Key(dtypes.ExtendedDType):
    type = dtypes.prng_key
    name = "key<test>"


from bedrax.lax import lattice


def meaning(code):
    """The argument for a code of the table, and (dtype, weak) as a result."""
    if code in WEAK:
        x = WEAK[code]
        return x, (np.dtype(type(x)), True)
    return np.dtype(NAMES[code]), (np.dtype(NAMES[code]), False)


def weakly(dtype):
    """A value with a weakly typed aval."""
    aval = types.SimpleNamespace(dtype=np.dtype(dtype), weak_type=True)
    return types.SimpleNamespace(aval=aval, dtype=aval.dtype, shape=())


def test_the_documented_table():
    columns = HEADER.split()
    rows = [line.split() for line in TABLE.strip().splitlines()]
    assert [r[0] for r in rows] == columns
    with config.enable_x64(True):
        for row in rows:
            for column, expected in zip(columns, row[1:], strict=True):
                found = lattice.result_type(meaning(row[0])[0], meaning(column)[0], return_weak_type_flag=True)
                assert found == meaning(expected)[1], (row[0], column)


@given(operand, operand, operand)
def test_promotion_is_a_join(a, b, c):
    """Idempotent, commutative, associative."""

    def join(*xs):
        return lattice.promote([d for d, _ in xs], [w for _, w in xs])

    with config.enable_x64(True):
        assert join(a, a) == a
        assert join(a, b) == join(b, a)
        assert join(join(a, b), c) == join(a, join(b, c)) == join(a, b, c)


@given(wide, wide)
def test_without_x64_everything_fits_32_bits(a, b):
    narrow = dtypes.canonicalize_dtype
    result = lattice.promote_types(a, b)
    assert result == lattice.promote_types(narrow(a), narrow(b)) == narrow(result)


@pytest.mark.parametrize("narrow", dtypes.narrow_int_dtypes + dtypes.narrow_float_dtypes, ids=str)
def test_narrow_types_combine_only_on_purpose(narrow):
    assert lattice.promote_types(narrow, narrow) == narrow
    assert lattice.promote_types(narrow, bool) == narrow
    assert lattice.result_type(narrow, 1, return_weak_type_flag=True) == (narrow, False)
    is_float = narrow in dtypes.narrow_float_dtypes
    for other in dtypes.all_dtypes:
        if other in (narrow, dtypes.bool_dtype):
            continue
        if is_float and dtypes.is_integer(other) and other not in dtypes.narrow_int_dtypes:
            assert lattice.promote_types(other, narrow) == narrow
        else:
            with pytest.raises(dtypes.TypePromotionError, match=rf"{narrow.name}.*astype"):
                lattice.promote_types(narrow, other)
    if is_float:
        assert lattice.result_type(2.0, narrow) == narrow
    else:
        with pytest.raises(dtypes.TypePromotionError, match="a Python float"):
            lattice.result_type(2.0, narrow)


def test_strict_mode():
    with config.numpy_dtype_promotion("strict"), config.enable_x64(True):
        for a, b in itertools.combinations(dtypes.all_dtypes, 2):
            with pytest.raises(dtypes.TypePromotionError, match="strict"):
                lattice.promote_types(a, b)
        assert lattice.result_type(np.int8(1), 1) == np.int8
        assert lattice.result_type(np.float16(1), 1) == np.float16
        assert lattice.result_type(np.complex64(1), 1.0) == np.complex64
        assert lattice.result_type(1, 1.0, return_weak_type_flag=True) == (np.float64, True)
        for x, y in ((np.int8(1), 1.0), (np.float32(1), 1j), (np.bool_(1), 1), (True, 1.0)):
            with pytest.raises(dtypes.TypePromotionError, match="strict"):
                lattice.result_type(x, y)


def test_weak_values():
    assert lattice.result_type(weakly("float32"), np.float16(1)) == np.float16
    assert lattice.result_type(weakly("float32"), 1, return_weak_type_flag=True) == (np.float32, True)
    assert lattice.result_type(weakly("int32"), np.int8(1), return_weak_type_flag=True) == (np.int8, False)
    assert lattice.result_type(weakly("bool"), True, return_weak_type_flag=True) == (np.bool_, False)
    with config.enable_x64(True):
        assert lattice.result_type(weakly("float32"), 1.0, return_weak_type_flag=True) == (np.float64, True)


def test_result_type_of_types_names_values_and_none():
    assert lattice.result_type(float, np.zeros(3, np.int8), return_weak_type_flag=True) == (np.float32, True)
    assert lattice.result_type("bfloat16", [].__len__()) == dtypes.bfloat16
    assert lattice.result_type(np.float64(1)) == np.float32
    assert lattice.result_type(None) == np.float32
    assert lattice.result_type(ml_dtypes.int4) == ml_dtypes.int4
    assert lattice.result_type(np.ones(2), return_weak_type_flag=True) == (np.float32, False)

    class Count(int):
        pass

    assert lattice.result_type(Count(3), np.uint8(1)) == np.uint8


def test_result_type_refusals():
    with pytest.raises(ValueError, match="at least one"):
        lattice.result_type()
    with pytest.raises(TypeError, match="Cannot determine dtype of"):
        lattice.result_type([1, 2], 1)
    for bad in (np.array("a"), np.array(None), "datetime64[s]", np.longdouble):
        with pytest.raises(TypeError, match="arrays hold numbers and bools, got dtype"):
            lattice.result_type(bad)
        with pytest.raises(TypeError, match="arrays hold numbers and bools, got dtype"):
            lattice.result_type(np.float32(1), bad)
    with pytest.raises(dtypes.TypePromotionError, match="float0"):
        lattice.promote_types(dtypes.float0, np.float32)
    assert lattice.promote_types(dtypes.float0, dtypes.float0) == dtypes.float0
    assert issubclass(dtypes.TypePromotionError, ValueError)


def test_classes_with_a_dtype_are_dtypes():
    class scalar_type:
        dtype = np.dtype(np.int64)

    assert dtypes.as_dtype(scalar_type) == np.int64
    assert dtypes.canonicalize_dtype(scalar_type) == np.int32
    assert dtypes.issubdtype(scalar_type, np.signedinteger)
    assert lattice.result_type(scalar_type, np.int8(1)) == np.int32


def test_extended_dtypes():
    key = Key()
    assert dtypes.issubdtype(key, dtypes.prng_key) and dtypes.issubdtype(key, dtypes.extended)
    assert dtypes.issubdtype(key, np.generic) and not dtypes.issubdtype(key, np.number)
    assert dtypes.issubdtype(key, key) and not dtypes.issubdtype(key, "float32")
    assert not dtypes.issubdtype("float32", key)
    assert dtypes.issubdtype(dtypes.prng_key, dtypes.extended)
    assert not dtypes.issubdtype(dtypes.extended, dtypes.prng_key)
    assert dtypes.is_extended(key) and not dtypes.is_extended(np.dtype("int8"))
    assert dtypes.short_name(key) == str(key) == "key<test>"
    assert dtypes.as_dtype(key) is key and lattice.result_type(key, key) is key
    assert dtypes.canonicalize_dtype(key, allow_extended_dtype=True) is key
    with pytest.raises(ValueError, match="key<test>"):
        dtypes.canonicalize_dtype(key)
    with pytest.raises(dtypes.TypePromotionError, match="key<test>"):
        lattice.promote_types(key, np.float32)
    with pytest.raises(ValueError, match="key<test>"):
        dtypes.itemsize_bits(key)
    with pytest.raises(TypeError, match="key<test>"):
        dtypes.to_inexact_dtype(key)
    with pytest.raises(TypeError):
        dtypes.scalar_type_of(key)
