"""Element types: spelling, kinds, the 32/64-bit mode."""

import pickle
import types
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedrax.core import config, dtypes

# ---- Spelling and mode


@pytest.mark.parametrize(
    "spelling",
    [
        "float32",
        "f4",
        np.float32,
        np.dtype("float32"),
        ">f4",
        "single",
        types.SimpleNamespace(dtype=np.dtype("float32")),
    ],
    ids=str,
)
def test_spellings_of_a_dtype(spelling):
    if spelling != ">f4":
        assert dtypes.as_dtype(spelling) == np.float32
    if not isinstance(spelling, types.SimpleNamespace):
        for x64 in (False, True):
            with config.enable_x64(x64):
                assert dtypes.canonicalize_dtype(spelling) == np.dtype("float32")


@pytest.mark.parametrize("dtype", dtypes.all_dtypes, ids=str)
def test_every_type_has_its_name(dtype):
    assert dtypes.as_dtype(dtype.name) == dtype == dtypes.as_dtype(dtype.type)
    with config.enable_x64(True):
        assert dtypes.canonicalize_dtype(dtype) == dtype == dtypes.canonicalize_dtype(dtype.name)
    kind = {"bool": "bool", "uint": "u", "int": "i", "bfloat": "bf", "float": "f", "complex": "c"}
    letters = dtype.name.split("_")[0].rstrip("0123456789")
    assert dtypes.short_name(dtype) == (kind[letters] + dtype.name[len(letters) :])


@pytest.mark.parametrize(
    "wide, narrow", [("int64", "int32"), ("uint64", "uint32"), ("float64", "float32"), ("complex128", "complex64")]
)
def test_mode(wide, narrow):
    for _ in range(2):  # the results differ between the modes
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
def test_values_that_are_no_dtypes_are_refused(bad):
    with pytest.raises(TypeError):
        dtypes.canonicalize_dtype(bad)


def test_values_without_dtype():
    with pytest.raises(TypeError, match="Cannot determine dtype"):
        dtypes.dtype_of([1])
    with pytest.raises(TypeError, match="Cannot determine dtype"):
        dtypes.dtype_of(np.float32)


def test_explicit_64_bit_requests_warn():
    with pytest.warns(UserWarning, match="float64, requested in zeros, is not available: float32 is taken") as caught:
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


@given(
    *[
        st.sampled_from(
            [
                np.generic,
                np.number,
                np.integer,
                np.floating,
                np.inexact,
                np.float32,
                np.int8,
                int,
                float,
                bool,
                complex,
                "float64",
                None,
                np.character,
                np.str_,
                np.void,
            ]
        )
    ]
    * 2
)
def test_issubdtype_is_numpys_elsewhere(a, b):
    assert dtypes.issubdtype(a, b) == np.issubdtype(a, b)


class Key(dtypes.ExtendedDType):
    type = dtypes.prng_key
    name = "key<test>"


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


def test_finfo_and_iinfo_of_other_spellings():
    assert dtypes.finfo("complex64").eps == np.finfo(np.float32).eps
    assert dtypes.finfo(np.zeros(2, np.float16)).bits == 16
    assert dtypes.iinfo(np.zeros(2, np.int8)).max == 127
    with pytest.raises(ValueError, match=r"data type .*int4.* not "):  # the rest of the sentence is NumPy's
        dtypes.finfo("int4")
    with pytest.raises(ValueError, match="Invalid integer"):
        dtypes.iinfo("float32")


@pytest.mark.parametrize("x64", [False, True])
def test_inexact_complex_and_real_dtypes_of_a_dtype(x64):
    with config.enable_x64(x64):
        default = np.dtype("float64" if x64 else "float32")
        for dtype in dtypes.all_dtypes:
            dtype = dtypes.canonicalize_dtype(dtype)
            inexact = dtypes.to_inexact_dtype(dtype)
            wanted = "float64" if dtype in (np.int64, np.uint64) else "float32"  # not the default: int32 stays 32 bits
            assert inexact == (dtype if dtypes.is_inexact(dtype) else wanted)
            as_complex = dtypes.to_complex_dtype(dtype)
            assert dtypes.is_complex(as_complex)
            assert dtypes.itemsize_bits(as_complex) >= min(2 * dtypes.itemsize_bits(dtypes.to_real_dtype(inexact)), 128)
            real = dtypes.to_real_dtype(dtype)
            assert not dtypes.is_complex(real) and (real == dtype or dtypes.to_complex_dtype(real) == dtype)
        assert dtypes.default_uint_dtype() == ("uint64" if x64 else "uint32")
        assert dtypes.default_complex_dtype() == ("complex128" if x64 else "complex64")
        assert dtypes.default_float_dtype() == default


def test_native_dtypes_are_numpys_also_in_unpickled_arrays():
    for dtype in dtypes.all_dtypes:
        known = dtype.isbuiltin == 1  # `dtype` is the one object
        assert dtypes.is_native(dtype) == known
        assert dtypes.is_native(pickle.loads(pickle.dumps(np.zeros(2, dtype))).dtype) == known
    assert not dtypes.is_native(dtypes.float0)
