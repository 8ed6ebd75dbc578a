"""The elementwise and conversion functions of lax: types of results, and errors."""

import pickle
import warnings

import ml_dtypes
import numpy as np
import pytest

from bedrax import lax
from bedrax.core import config
from bedrax.core.avals import aval_of
from bedrax.core.staging import make_jaxpr
from bedrax.lax.primitives import elementwise as p
from bedrax.numpy_backend.rules.elementwise import Kernels
from bedrax.numpy_backend.tables import numpy_rules

F, I = np.float32(1), np.int32(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lax.add(I, F), "lax.add takes operands of one dtype, got int32, float32.* (jnp|bedrax.numpy).add"),
        (lambda: lax.rem(F, I), r"lax.rem takes operands of one dtype, got float32, int32\n"),
        (lambda: lax.sin(I), "sin does not accept dtype int32; it takes floating, complexfloating"),
        (lambda: lax.neg(np.bool_(True)), "neg does not accept dtype bool"),
        (lambda: lax.abs(np.uint8(1)), "signedinteger"),
        (lambda: lax.lt(np.complex64(1), np.complex64(1)), "lt does not accept dtype complex64 at position 0"),
        (lambda: lax.bitwise_and(F, F), "and does not accept dtype float32 at position 0.*integer, bool"),
        (lambda: lax.add(np.ones(3, "f"), np.ones(4, "f")), r"incompatible shapes for broadcasting: \(3,\), \(4,\)"),
        (lambda: lax.add(np.ones(3, "f"), np.ones((2, 3), "f")), r"operands have one rank or rank"),
        (lambda: lax.pow(I, I), "pow does not accept dtype int32 at position 0"),
        (lambda: lax.integer_pow(I, -1), "an integer to a negative power is not an integer, got int"),
        (lambda: lax.clamp(np.ones(2, "f"), np.ones(3, "f"), F), r"min.shape == operand.shape or min.shape == \(\)"),
        (lambda: lax.clamp(I, F, I), "lax.clamp takes operands of one dtype, got int32, float32, int32"),
        (lambda: lax.select_n(F, F, F), "holds booleans or integers, got float"),
        (lambda: lax.select_n(np.bool_(True), F, F, F), "chooses between two cases, got"),
        (
            lambda: lax.select_n(np.ones(2, bool), np.ones(3, "f"), np.ones(3, "f")),
            "must be scalar or have the same shape",
        ),
        (lambda: lax.select(np.bool_(True), F, np.ones(2, "f")), "the cases have one shape, got"),
        (lambda: lax.complex(ml_dtypes.bfloat16(1), ml_dtypes.bfloat16(1)), "complex does not accept dtype bfloat16"),
        (lambda: lax.bitcast_convert_type(np.complex64(1), np.float32), "to split bool and complex"),
        (lambda: lax.reduce_precision(I, 5, 2), "reduce_precision does not accept dtype int32"),
    ],
)
def test_type_errors(call, message):
    with pytest.raises(TypeError, match=message):
        call()
    with pytest.raises(TypeError, match=message):  # the shape rules raise the same when a program is traced
        make_jaxpr(call)()


def test_value_errors():
    with pytest.raises(ValueError, match=r"4 \* 16 != 32"):
        lax.bitcast_convert_type(np.ones((3, 4), np.int16), np.float32)
    with pytest.raises(ValueError, match="exponent_bits is 1 at least, got 0"):
        lax.reduce_precision(F, 0, 2)
    with pytest.raises(ValueError, match="mantissa_bits is not negative, got"):
        lax.reduce_precision(F, 5, -1)
    with pytest.raises(ValueError, match="new_dtype is None"):
        lax.convert_element_type(F, None)
    with pytest.raises(ValueError, match="bounds are not negative, got Tolerance"):
        lax.Tolerance(rtol=-1.0)


def test_weak_types():
    assert aval_of(lax.add(2.0, 3.0)).weak_type
    assert not aval_of(lax.add(F, 3.0)).weak_type
    assert aval_of(lax.eq(1.0, 2.0)).weak_type
    assert aval_of(lax.sin(1.0)).weak_type
    assert not aval_of(lax.convert_element_type(1.0, np.float32)).weak_type
    assert aval_of(lax.select_n(np.bool_(True), 1.0, 2.0)).weak_type


def test_unit_axes_are_broadcast_explicitly():
    jaxpr = make_jaxpr(lax.add)(np.ones((2, 1), "f"), np.ones((1, 3), "f"))
    assert [str(e.primitive) for e in jaxpr.jaxpr.eqns] == ["broadcast_in_dim", "broadcast_in_dim", "add"]
    assert lax.max(np.ones((2, 1), "f"), np.ones((2, 3), "f")).shape == (2, 3)


def test_equal_operand_and_result_types_share_an_aval():
    aval = aval_of(np.ones((3, 4), "f"))
    assert p.add_p.abstract_eval(aval, aval) is aval
    assert p.sin_p.abstract_eval(aval) is aval


def test_conversions():
    x = lax.convert_element_type(np.float32(1.5), np.float32)
    assert lax.convert_element_type(x, np.float32) is x
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        assert lax.convert_element_type(np.complex64(2 + 1j), np.float32) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lax.convert_element_type(np.complex64(1j), bool)
    with pytest.warns(UserWarning, match="float64, requested in convert_element_type"):
        assert lax.convert_element_type(F, np.float64).dtype == np.float32
    assert lax.convert_element_type(F, float).dtype == np.float32
    with config.enable_x64(True):
        assert lax.convert_element_type(F, float).dtype == np.float64
        assert lax.convert_element_type(F, np.float64).dtype == np.float64
    with pytest.raises(TypeError, match="convert_element_type: an array or a number is needed at position 0, got"):
        lax.convert_element_type([1.0, 2.0], np.int32)


def test_stop_gradient_takes_trees():
    out = lax.stop_gradient({"a": np.ones(2, "f"), "b": (1,)})
    assert out["a"].shape == (2,) and int(out["b"][0]) == 1


def test_accuracy_default_is_no_parameter():
    eqn = make_jaxpr(lambda x: lax.exp(x, accuracy=lax.AccuracyMode.DEFAULT))(F).jaxpr.eqns[0]
    assert eqn.params == {}
    eqn = make_jaxpr(lambda x: lax.exp(x, accuracy=lax.Tolerance(1e-6, 0.0, 1)))(F).jaxpr.eqns[0]
    assert eqn.params == {"accuracy": lax.Tolerance(1e-6, 0.0, 1)}


def test_scalar_like():
    assert type(p.scalar_like(1.0, 2)) is float  # weak stays weak
    assert p.scalar_like(np.ones(2, ml_dtypes.bfloat16), 0.5).dtype == ml_dtypes.bfloat16
    assert p.scalar_like(np.complex64(1), 1j) == 1j


def test_every_narrow_type_adds_like_float32():
    for name in ("float8_e5m2", "float8_e4m3fn", "float8_e3m4", "bfloat16", "float16"):
        dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
        x, y = np.array([0.5, 1.5]).astype(dtype), np.array([0.25, -1]).astype(dtype)
        out = np.asarray(lax.add(x, y))
        assert out.dtype == dtype
        np.testing.assert_array_equal(out.astype("f"), (x.astype("f") + y.astype("f")).astype(dtype).astype("f"))


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.int64, np.uint64, np.float16, np.float64, np.complex64, np.complex128]
)
def test_arrays_that_were_unpickled_have_numpys_arithmetic(dtype):
    """The dtype of such an array is equal to `np.dtype(dtype)`, but another object with other attributes."""
    x = np.array([0, 1, 100]).astype(dtype)
    if x.dtype.kind in "fc":
        x = x * dtype(np.finfo(dtype).max / 128) * dtype(1 / 3)
    again = pickle.loads(pickle.dumps(x))
    functions = {p.eq_p: np.equal, p.or_p: np.bitwise_or} if dtype is np.bool_ else {p.add_p: np.add, p.eq_p: np.equal}
    for prim, compute in functions.items():
        found = Kernels(prim, compute, 2)[again.dtype](again, again)
        assert found.tobytes() == compute(x, x).tobytes(), prim
    if x.dtype.kind in "iu":
        big = pickle.loads(pickle.dumps(x + dtype(np.iinfo(dtype).max - 100)))
        counts = [bin(int(v)).count("1") for v in big]
        assert np.asarray(numpy_rules[p.population_count_p](big)).tolist() == counts
