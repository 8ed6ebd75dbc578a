"""Contractions beyond the records: precision, dimension numbers, and errors."""

import re

import ml_dtypes
import numpy as np
import pytest

from bedrax import lax
from bedrax.core import staging
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.tables import print_rules
from bedrax.lax import flags

X = np.arange(12, dtype=np.float32).reshape(3, 4)
ROWS = (((1,), (1,)), ((), ()))


def eqn_of(fun, *args):
    jaxpr = staging.program_of(lambda *xs: [fun(*xs)], [aval_of(a) for a in args])
    (eqn,) = jaxpr.eqns
    return eqn


@pytest.mark.parametrize(
    "given, pair",
    [
        ("highest", "HIGHEST"),
        ("float32", "HIGHEST"),
        ("high", "HIGH"),
        ("bfloat16_3x", "HIGH"),
        ("tensorfloat32", "HIGH"),
        ("default", "DEFAULT"),
        ("bfloat16", "DEFAULT"),
        ("fastest", "DEFAULT"),
        (lax.Precision.HIGH, "HIGH"),
    ],
)
def test_precision_names(given, pair):
    eqn = eqn_of(lambda x: lax.dot_general(x, x, ROWS, precision=given), X)
    assert eqn.params["precision"] == (lax.Precision[pair],) * 2


def test_precision_pairs_presets_and_the_option():
    precision_of = lambda p: eqn_of(lambda x: lax.dot_general(x, x, ROWS, precision=p), X).params["precision"]
    assert precision_of(None) is None
    assert precision_of(("high", lax.Precision.DEFAULT)) == (lax.Precision.HIGH, lax.Precision.DEFAULT)
    assert precision_of("F32_F32_F32") is lax.DotAlgorithmPreset.F32_F32_F32
    algorithm = lax.DotAlgorithm(np.float32, np.float32, np.float32)
    assert precision_of(algorithm) == algorithm
    with flags.default_matmul_precision("float32"):
        assert precision_of(None) == (lax.Precision.HIGHEST,) * 2
        assert precision_of("default") == (lax.Precision.DEFAULT,) * 2


def test_presets_describe_themselves():
    preset = lax.DotAlgorithmPreset
    assert preset.BF16_BF16_F32_X3.accumulation_type is np.float32
    assert preset.BF16_BF16_BF16.accumulation_type is ml_dtypes.bfloat16
    assert preset.ANY_F8_ANY_F8_F32_FAST_ACCUM.accumulation_type is np.float32
    assert preset.DEFAULT.accumulation_type is None
    assert preset.F16_F16_F32.supported_lhs_types == (np.float16,)
    assert preset.TF32_TF32_F32.supported_rhs_types == (np.float32,)
    assert preset.ANY_F8_ANY_F8_ANY.supported_lhs_types is None


def test_algorithms_round_the_operands():
    x = np.float32([[1 + 2**-12]])
    one = lambda p: np.asarray(lax.dot_general(x, np.ones_like(x), ROWS, precision=p))[0, 0]
    assert one("TF32_TF32_F32") == 1 and one("BF16_BF16_F32") == 1
    assert one("F32_F32_F32") == x[0, 0] and one("BF16_BF16_F32_X6") == x[0, 0]
    assert one(lax.DotAlgorithm(ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32)) == 1


def test_printed_contractions_omit_default_parameters():
    eqn = eqn_of(lambda x: lax.dot_general(x, x, ROWS), X)
    assert print_rules[lax.dot_general_p](eqn.params) == {"dimension_numbers": (([1], [1]), ([], []))}


@pytest.mark.parametrize(
    "x, y, result",
    [
        ("int8", "uint8", "int8"),
        ("int8", "uint16", "uint16"),
        ("bool", "int4", "int4"),
        ("int32", "float8_e5m2", "float8_e5m2"),
        ("bfloat16", "float16", "bfloat16"),
        ("float8_e4m3fn", "float8_e5m2", "float8_e5m2"),
        ("float16", "complex64", "complex64"),
    ],
)
def test_dtype_of_a_mixed_product(x, y, result):
    for a, b in ((x, y), (y, x)):
        out = lax.dot_general_p.abstract_eval(
            ShapedArray((2,), a), ShapedArray((2,), b), dimension_numbers=(((0,), (0,)), ((), ()))
        )
        assert out.dtype == np.dtype(result) and out.shape == ()


def test_dot_and_batch_matmul():
    np.testing.assert_array_equal(lax.dot(X, X[0]), X @ X[0])
    np.testing.assert_array_equal(lax.dot(X[0], X[1]), X[0] @ X[1])
    stack = np.stack([X, X + 1])
    np.testing.assert_array_equal(lax.batch_matmul(stack, stack.transpose(0, 2, 1)), stack @ stack.transpose(0, 2, 1))


@pytest.mark.parametrize(
    "numbers, message",
    [
        ((((1,), (0,)), ((), ())), "dot_general requires contracting dimensions to have the same shape, got"),
        ((((5,), (1,)), ((), ())), "lacks some of batch"),
        ((((1, 1), (1, 1)), ((), ())), "the contracting dimensions"),
        ((((1,), (1,)), ((1,), (1,))), "and contracting"),
        ((((1,), (1,)), ((0,), ())), "as many lhs as rhs batch dimensions are needed, got"),
        (((1,), (1,)), "lhs contracting, rhs contracting"),
    ],
)
def test_dimension_numbers_that_do_not_fit(numbers, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        eqn_of(lambda x: lax.dot_general(x, x, numbers), X)


def test_errors():
    with pytest.raises(ValueError, match="precision is None, a lax.Precision"):
        lax.dot_general(X, X, ROWS, precision="exact")
    with pytest.raises(ValueError, match="do not fit as matrices"):
        lax.dot(X, X)
    with pytest.raises(TypeError, match="has fewer bits than the result"):
        eqn_of(lambda x: lax.dot_general(x, x, ROWS, preferred_element_type=np.int8), X.astype(np.int32))
    with pytest.raises(TypeError, match="group_sizes"):
        eqn_of(lambda x, y: lax.ragged_dot(x, y, np.array([1, 1, 1])), X, np.ones((2, 4, 5), np.float32))
    with pytest.raises(TypeError, match=r"group_sizes are integers, got dtype float"):
        eqn_of(lambda x, y: lax.ragged_dot(x, y, np.ones(2, np.float32)), X, np.ones((2, 4, 5), np.float32))
    with pytest.raises(TypeError, match="must be divisible by its scale"):
        eqn_of(lambda x, s: lax.scaled_dot(x, x, lhs_scale=s), np.ones((4, 4), np.float32), np.ones((4, 3), np.float32))
    with pytest.raises(TypeError, match="each scale must span at least"):
        eqn_of(lambda x, s: lax.scaled_dot(x, x, lhs_scale=s), np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))


def test_sums_of_floats_are_converted_to_integers_as_other_floats():
    """NaN is 0, and the limits of the dtype are kept."""
    x, one = np.array([[np.nan], [np.inf], [-np.inf], [300.0], [2.75]], np.float32), np.ones((1, 1), np.float32)
    for dtype in (np.int8, np.uint8, np.int32):
        product = lax.dot_general(x, one, (((1,), (0,)), ((), ())), preferred_element_type=dtype)
        np.testing.assert_array_equal(product, lax.convert_element_type(x, dtype))
        assert np.asarray(product).ravel().tolist()[0] == 0
