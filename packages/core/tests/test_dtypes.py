"""Element types: spelling, kinds, the 32/64-bit mode, promotion."""

import itertools
import types
import warnings

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
NAMES = dict(zip(HEADER.split()[:15], (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 bfloat16 float16 float32 float64 complex64 complex128"
).split(), strict=True))  # fmt: skip
X64 = {"int": "int64", "float": "float64", "complex": "complex128"}


def meaning(code):
    """The argument that stands for a code of the table, and (dtype, weak) as a result."""
    if code in WEAK:
        x = WEAK[code]
        return x, (np.dtype(type(x)), True)
    return np.dtype(NAMES[code]), (np.dtype(NAMES[code]), False)


def weakly(dtype):
    """A value whose aval is weakly typed."""
    aval = types.SimpleNamespace(dtype=np.dtype(dtype), weak_type=True)
    return types.SimpleNamespace(aval=aval, dtype=aval.dtype, shape=())


def test_the_documented_table():
    columns = HEADER.split()
    rows = [line.split() for line in TABLE.strip().splitlines()]
    assert [r[0] for r in rows] == columns
    with config.enable_x64(True):
        for row in rows:
            for column, expected in zip(columns, row[1:], strict=True):
                found = dtypes.result_type(meaning(row[0])[0], meaning(column)[0], return_weak_type_flag=True)
                assert found == meaning(expected)[1], (row[0], column)


wide = st.sampled_from([d for d in dtypes.all_dtypes if d not in dtypes.narrow_int_dtypes + dtypes.narrow_float_dtypes])
operand = st.one_of(
    wide.map(lambda d: (d, False)),
    st.sampled_from([np.dtype(t) for t in (int, float, complex)]).map(lambda d: (d, True)),
)


@given(operand, operand, operand)
def test_promotion_is_a_join(a, b, c):
    """Idempotent, commutative, associative."""

    def join(*xs):
        return dtypes.promote([d for d, _ in xs], [w for _, w in xs])

    with config.enable_x64(True):
        assert join(a, a) == a
        assert join(a, b) == join(b, a)
        assert join(join(a, b), c) == join(a, join(b, c)) == join(a, b, c)


@given(wide, wide)
def test_without_x64_everything_fits_32_bits(a, b):
    narrow = dtypes.canonicalize_dtype
    result = dtypes.promote_types(a, b)
    assert result == dtypes.promote_types(narrow(a), narrow(b)) == narrow(result)


@pytest.mark.parametrize("narrow", dtypes.narrow_int_dtypes + dtypes.narrow_float_dtypes, ids=str)
def test_narrow_types_combine_only_on_purpose(narrow):
    assert dtypes.promote_types(narrow, narrow) == narrow
    assert dtypes.promote_types(narrow, bool) == narrow
    assert dtypes.result_type(narrow, 1, return_weak_type_flag=True) == (narrow, False)
    is_float = narrow in dtypes.narrow_float_dtypes
    for other in dtypes.all_dtypes:
        if other in (narrow, dtypes.bool_dtype):
            continue
        if is_float and dtypes.is_integer(other) and other not in dtypes.narrow_int_dtypes:
            assert dtypes.promote_types(other, narrow) == narrow
        else:
            with pytest.raises(dtypes.TypePromotionError, match=rf"{narrow.name}.*astype"):
                dtypes.promote_types(narrow, other)
    if is_float:
        assert dtypes.result_type(2.0, narrow) == narrow
    else:
        with pytest.raises(dtypes.TypePromotionError, match="a Python float"):
            dtypes.result_type(2.0, narrow)


def test_strict_mode():
    with config.numpy_dtype_promotion("strict"), config.enable_x64(True):
        for a, b in itertools.combinations(dtypes.all_dtypes, 2):
            with pytest.raises(dtypes.TypePromotionError, match="strict"):
                dtypes.promote_types(a, b)
        assert dtypes.result_type(np.int8(1), 1) == np.int8
        assert dtypes.result_type(np.float16(1), 1) == np.float16
        assert dtypes.result_type(np.complex64(1), 1.0) == np.complex64
        assert dtypes.result_type(1, 1.0, return_weak_type_flag=True) == (np.float64, True)
        for x, y in ((np.int8(1), 1.0), (np.float32(1), 1j), (np.bool_(1), 1), (True, 1.0)):
            with pytest.raises(dtypes.TypePromotionError, match="strict"):
                dtypes.result_type(x, y)


def test_weak_values():
    assert dtypes.result_type(weakly("float32"), np.float16(1)) == np.float16
    assert dtypes.result_type(weakly("float32"), 1, return_weak_type_flag=True) == (np.float32, True)
    assert dtypes.result_type(weakly("int32"), np.int8(1), return_weak_type_flag=True) == (np.int8, False)
    assert dtypes.result_type(weakly("bool"), True, return_weak_type_flag=True) == (np.bool_, False)
    with config.enable_x64(True):
        assert dtypes.result_type(weakly("float32"), 1.0, return_weak_type_flag=True) == (np.float64, True)


def test_result_type_of_all_sorts():
    assert dtypes.result_type(float, np.zeros(3, np.int8), return_weak_type_flag=True) == (np.float32, True)
    assert dtypes.result_type("bfloat16", [].__len__()) == dtypes.bfloat16
    assert dtypes.result_type(np.float64(1)) == np.float32
    assert dtypes.result_type(None) == np.float32
    assert dtypes.result_type(ml_dtypes.int4) == ml_dtypes.int4
    assert dtypes.result_type(np.ones(2), return_weak_type_flag=True) == (np.float32, False)

    class Count(int):
        pass

    assert dtypes.result_type(Count(3), np.uint8(1)) == np.uint8


def test_result_type_refusals():
    with pytest.raises(ValueError, match="at least one"):
        dtypes.result_type()
    with pytest.raises(TypeError, match="Cannot determine dtype of"):
        dtypes.result_type([1, 2], 1)
    for bad in (np.array("a"), np.array(None), "datetime64[s]", np.longdouble):
        with pytest.raises(TypeError, match="arrays hold numbers and bools, got dtype"):
            dtypes.result_type(bad)
        with pytest.raises(TypeError, match="arrays hold numbers and bools, got dtype"):
            dtypes.result_type(np.float32(1), bad)
    with pytest.raises(dtypes.TypePromotionError, match="float0"):
        dtypes.promote_types(dtypes.float0, np.float32)
    assert dtypes.promote_types(dtypes.float0, dtypes.float0) == dtypes.float0
    assert issubclass(dtypes.TypePromotionError, ValueError)


# ---- Spelling and mode


@pytest.mark.parametrize("spelling", ["float32", "f4", np.float32, np.dtype("float32"), ">f4", "single",
                                      types.SimpleNamespace(dtype=np.dtype("float32"))], ids=str)  # fmt: skip
def test_spellings(spelling):
    if spelling != ">f4":
        assert dtypes.as_dtype(spelling) == np.float32
    if not isinstance(spelling, types.SimpleNamespace):
        for x64 in (False, True):
            with config.enable_x64(x64):
                assert dtypes.canonicalize_dtype(spelling) == np.dtype("float32")


def test_classes_with_a_dtype_are_dtypes():
    class scalar_type:
        dtype = np.dtype(np.int64)

    assert dtypes.as_dtype(scalar_type) == np.int64
    assert dtypes.canonicalize_dtype(scalar_type) == np.int32
    assert dtypes.issubdtype(scalar_type, np.signedinteger)
    assert dtypes.result_type(scalar_type, np.int8(1)) == np.int32


@pytest.mark.parametrize("dtype", dtypes.all_dtypes, ids=str)
def test_every_type_has_its_name(dtype):
    assert dtypes.as_dtype(dtype.name) == dtype == dtypes.as_dtype(dtype.type)
    with config.enable_x64(True):
        assert dtypes.canonicalize_dtype(dtype) == dtype == dtypes.canonicalize_dtype(dtype.name)
    kind = {"bool": "bool", "uint": "u", "int": "i", "bfloat": "bf", "float": "f", "complex": "c"}
    letters = dtype.name.split("_")[0].rstrip("0123456789")
    assert dtypes.short_name(dtype) == (kind[letters] + dtype.name[len(letters) :])


@pytest.mark.parametrize("wide, narrow", [("int64", "int32"), ("uint64", "uint32"), ("float64", "float32"),
                                          ("complex128", "complex64")])  # fmt: skip
def test_mode(wide, narrow):
    for _ in range(2):  # the answers of one mode are not those of the other
        assert dtypes.canonicalize_dtype(wide) == narrow == dtypes.canonicalize_dtype(np.dtype(wide))
        assert dtypes.dtype_of(np.zeros(2, wide)) == narrow
        with config.enable_x64(True):
            assert dtypes.canonicalize_dtype(wide) == wide
            assert dtypes.dtype_of(np.zeros(2, wide)) == wide


@pytest.mark.parametrize("scalar, bits", [(True, ""), (1, "32"), (1.0, "32"), (1j, "64")])
def test_python_scalars(scalar, bits):
    kind = type(scalar)
    assert dtypes.dtype_of(scalar) == kind.__name__ + bits == dtypes.python_scalar_dtype(kind)
    assert dtypes.canonicalize_dtype(kind) == dtypes.dtype_of(scalar)
    assert dtypes.is_python_scalar(scalar) and not dtypes.is_python_scalar(np.asarray(scalar)[()])
    assert dtypes.scalar_type_of(scalar) is kind is dtypes.scalar_type_of(np.asarray(scalar))
    with config.enable_x64(True):
        assert dtypes.dtype_of(scalar) == np.dtype(kind) == dtypes.as_dtype(kind)


def test_python_ints_must_fit():
    dtypes.check_python_int(2**31 - 1)
    dtypes.check_python_int(-(2**31))
    for bad in (2**31, -(2**31) - 1):
        with pytest.raises(OverflowError, match=f"{bad} too large to convert to int32"):
            dtypes.check_python_int(bad)
        with config.enable_x64(True):
            dtypes.check_python_int(bad)
    with config.enable_x64(True), pytest.raises(OverflowError, match="int64"):
        dtypes.check_python_int(2**63)


@pytest.mark.parametrize("bad", ["float99", 3.5, [], {}])
def test_what_is_no_dtype(bad):
    with pytest.raises(TypeError):
        dtypes.canonicalize_dtype(bad)


def test_values_without_dtype():
    with pytest.raises(TypeError, match="Cannot determine dtype"):
        dtypes.dtype_of([1])
    with pytest.raises(TypeError, match="Cannot determine dtype"):
        dtypes.dtype_of(np.float32)


def test_explicit_64_bit_requests_warn():
    with pytest.warns(UserWarning, match="float64, asked for in zeros, is not available: float32 is taken") as caught:
        assert dtypes.explicit_dtype("float64", "zeros") == np.float32
    assert caught[0].filename == __file__
    with config.explicit_x64_dtypes("error"), pytest.raises(ValueError, match="int64 is not available"):
        dtypes.check_user_dtype_supported(np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for quiet in (float, int, complex, None, "float32", np.uint8, bool, dtypes.float0):
            dtypes.check_user_dtype_supported(quiet)
        with config.explicit_x64_dtypes("allow"):
            assert dtypes.explicit_dtype("float64") == np.float64
            assert dtypes.explicit_dtype(float) == np.float32
        with config.enable_x64(True):
            assert dtypes.explicit_dtype("float64") == np.float64


# ---- Kinds


@pytest.mark.parametrize("dtype", dtypes.all_dtypes, ids=str)
def test_kinds_agree_with_names(dtype):
    name = dtype.name.lstrip("b") if dtype.name.startswith("bfloat") else dtype.name
    is_ = {
        np.signedinteger: name.startswith("int"),
        np.unsignedinteger: name.startswith("uint"),
        np.integer: "int" in name,
        np.floating: name.startswith("float"),
        np.complexfloating: name.startswith("complex"),
        np.inexact: name.startswith(("float", "complex")),
        np.number: name != "bool",
        np.bool_: name == "bool",
        np.generic: True,
        dtypes.extended: False,
    }
    for kind, expected in is_.items():
        for spelling in (dtype, dtype.name, dtype.type):
            assert dtypes.issubdtype(spelling, kind) is expected, kind
    assert dtypes.is_integer(dtype) == is_[np.integer]
    assert dtypes.is_signed_integer(dtype) == is_[np.signedinteger]
    assert dtypes.is_unsigned_integer(dtype) == is_[np.unsignedinteger]
    assert dtypes.is_floating(dtype) == is_[np.floating]
    assert dtypes.is_complex(dtype) == is_[np.complexfloating]
    assert dtypes.is_inexact(dtype) == is_[np.inexact]
    assert dtypes.is_bool(dtype) == is_[np.bool_]
    for other in dtypes.all_dtypes:
        assert dtypes.issubdtype(dtype, other) == (dtype == other) == dtypes.issubdtype(dtype, other.type)


@given(*[st.sampled_from([np.generic, np.number, np.integer, np.floating, np.inexact, np.float32, np.int8, int, float,
                          bool, complex, "float64", None, np.character, np.str_, np.void])] * 2)  # fmt: skip
def test_issubdtype_is_numpys_elsewhere(a, b):
    assert dtypes.issubdtype(a, b) == np.issubdtype(a, b)


class Key(dtypes.ExtendedDType):
    type = dtypes.prng_key
    name = "key<test>"


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
    assert dtypes.as_dtype(key) is key and dtypes.result_type(key, key) is key
    assert dtypes.canonicalize_dtype(key, allow_extended_dtype=True) is key
    with pytest.raises(ValueError, match="key<test>"):
        dtypes.canonicalize_dtype(key)
    with pytest.raises(dtypes.TypePromotionError, match="key<test>"):
        dtypes.promote_types(key, np.float32)
    with pytest.raises(ValueError, match="key<test>"):
        dtypes.itemsize_bits(key)
    with pytest.raises(TypeError, match="key<test>"):
        dtypes.to_inexact_dtype(key)
    with pytest.raises(TypeError):
        dtypes.scalar_type_of(key)


def test_float0():
    assert dtypes.float0.itemsize == 0
    assert dtypes.short_name(dtypes.float0) == "float0"
    assert dtypes.canonicalize_dtype(dtypes.float0) == dtypes.float0
    assert not dtypes.issubdtype(dtypes.float0, np.number)
    assert np.zeros((2, 3), dtypes.float0).shape == (2, 3)


# ---- Limits and relatives


@pytest.mark.parametrize("dtype", dtypes.all_dtypes, ids=str)
def test_bits(dtype):
    digits = "".join(c for c in dtype.name.split("_")[0] if c.isdigit())
    assert dtypes.itemsize_bits(dtype) == int(digits or 8)


@pytest.mark.parametrize("dtype", dtypes.integer_dtypes, ids=str)
def test_iinfo(dtype):
    info = dtypes.iinfo(dtype)
    bits = dtypes.itemsize_bits(dtype)
    signed = dtypes.is_signed_integer(dtype)
    assert info.bits == bits
    assert (info.min, info.max) == ((-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1))


@pytest.mark.parametrize("dtype", dtypes.float_dtypes, ids=str)
def test_finfo(dtype):
    info = dtypes.finfo(dtype)
    assert info.dtype == dtype and info.bits == dtypes.itemsize_bits(dtype)
    one = np.ones((), dtype)
    if dtype != dtypes.float8_e8m0fnu:  # it has no numbers between powers of two
        assert float(one + info.eps) == 1 + float(info.eps)
    assert float(info.max) > 0 and float(dtypes.finfo(dtype.name).smallest_normal) > 0


def test_limits_of_other_spellings():
    assert dtypes.finfo("complex64").eps == np.finfo(np.float32).eps
    assert dtypes.finfo(np.zeros(2, np.float16)).bits == 16
    assert dtypes.iinfo(np.zeros(2, np.int8)).max == 127
    with pytest.raises(ValueError, match="not inexact"):
        dtypes.finfo("int4")
    with pytest.raises(ValueError, match="Invalid integer"):
        dtypes.iinfo("float32")


@pytest.mark.parametrize("x64", [False, True])
def test_relatives(x64):
    with config.enable_x64(x64):
        default = np.dtype("float64" if x64 else "float32")
        for dtype in dtypes.all_dtypes:
            dtype = dtypes.canonicalize_dtype(dtype)
            inexact = dtypes.to_inexact_dtype(dtype)
            assert inexact == (dtype if dtypes.is_inexact(dtype) else default)
            as_complex = dtypes.to_complex_dtype(dtype)
            assert dtypes.is_complex(as_complex)
            assert dtypes.itemsize_bits(as_complex) >= min(2 * dtypes.itemsize_bits(dtypes.to_real_dtype(inexact)), 128)
            real = dtypes.to_real_dtype(dtype)
            assert not dtypes.is_complex(real) and (real == dtype or dtypes.to_complex_dtype(real) == dtype)
            assert dtypes.to_numeric_dtype(dtype) == (dtypes.default_int_dtype() if dtypes.is_bool(dtype) else dtype)
        assert dtypes.default_uint_dtype() == ("uint64" if x64 else "uint32")
        assert dtypes.default_complex_dtype() == ("complex128" if x64 else "complex64")
        assert dtypes.default_float_dtype() == default
