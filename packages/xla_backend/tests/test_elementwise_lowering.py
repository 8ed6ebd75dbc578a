"""StableHLO of elementwise functions and random bits, in cases with equal values but different programs."""

import math
import pickle

import numpy as np
import pytest

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.core import avals, config
from bedrax.xla_backend.door.versions import has
from bedrax.xla_backend.lowering import types


def _text(fun, *args) -> str:
    return xla.jit(fun).lower(*args).as_text()


def test_scalars_are_broadcast_and_not_stored():
    text = _text(lambda x: lax.mul(x, np.float32(2)), np.ones((300, 400), "f"))
    assert "dense<2.000000e+00>" in text and text.count("stablehlo.multiply") == 1


def test_scalars_of_another_dtype_than_the_result_are_broadcast():
    x, flag = np.ones((2, 3), "f"), np.array([True, False])
    text = _text(lambda x: lax.lt(x, np.float32(2)), x)
    assert "(tensor<f32>) -> tensor<2x3xf32>" in text and "(tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>" in text
    assert lax.mul(x.astype("bfloat16"), lax.full((), 3, "bfloat16"), out_dtype=np.dtype("f")).dtype == np.float32
    assert np.asarray(xla.jit(lambda f: lax.eq(f, True))(flag)).tolist() == flag.tolist()


def test_types_are_found_with_and_without_tokens():
    plain = avals.plain_aval((2, 3), np.dtype("f"), False)
    alone = avals.ShapedArray((2, 3), np.dtype("f"))
    assert plain.token and alone.token is None
    assert types.type_of(plain) == types.type_of(alone) == types.tensor_type((2, 3), np.dtype("f"))


def test_accuracy_is_an_attribute():
    text = _text(lambda x: lax.exp(x, accuracy=lax.Tolerance(0.0, 1e-6, 2)), np.ones(3, "f"))
    assert "ulps = 2" in text and "TOLERANCE" in text
    assert "HIGHEST" in _text(lambda x: lax.tanh(x, accuracy=lax.AccuracyMode.HIGHEST), np.ones(3, "f"))


def test_one_operation_each():
    x = np.ones(3, "f")
    for fun, op in ((lax.erf, "chlo.erf"), (lax.lgamma, "chlo.lgamma"), (lax.logistic, "stablehlo.logistic")):
        text = _text(fun, x)
        assert op in text and text.count("stablehlo.") <= 2, text


def test_threefry_is_short_on_cpu():
    key = np.uint32(1)
    text = _text(lambda x: lax.threefry2x32(key, key, x, x), np.arange(4, dtype=np.uint32))
    assert "stablehlo.while" in text and text.count("shift_left") < 20  # fewer than the number of rounds


def test_rng_uniform_is_in_range():
    for dtype in (np.float32, np.int32):
        draws = np.asarray(xla.jit(lambda dtype=dtype: lax.rng_uniform(dtype(2), dtype(7), (300,)))())
        assert draws.dtype == dtype and draws.min() >= 2 and draws.max() < 7 and draws.std() > 0.5


def test_constants_are_merged_by_their_bits():
    nan = float("nan")
    values = [complex(nan, 1), complex(nan, 2), complex(3, nan), complex(-1, 0.0), complex(-1, -0.0), nan, 0.0, -0.0]
    outs = xla.jit(lambda x: [lax.add(x, lax.full((), v, np.complex64)) for v in values])(np.complex64(-0.0 - 0.0j))
    same = xla.jit(lambda: [lax.full((2,), v, np.complex64) for v in values])()
    for value, out, pair in zip(values, outs, same, strict=True):
        np.testing.assert_array_equal(np.asarray(out), np.complex64(value))
        assert np.asarray(pair).tobytes() == 2 * np.complex64(value).tobytes()


def test_parameters_of_eager_operations_are_told_apart_by_their_bits():
    for value in (0.0, -0.0):
        found = lax.clamp(np.float32(value), np.ones(1, "f"), np.float32(value))
        assert np.signbit(np.asarray(found))[0] == np.signbit(value)
        numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
        filled = lax.gather(
            np.ones(2, "f"), np.array([[7]]), numbers, (1,), mode=lax.GatherScatterMode.FILL_OR_DROP, fill_value=value
        )
        assert np.signbit(np.asarray(filled))[0] == np.signbit(value)


def test_accuracy_of_logarithms_and_error_functions():
    assert "HIGHEST" in _text(lambda x: lax.log2(x, accuracy=lax.AccuracyMode.HIGHEST), np.ones(3, "f"))
    x = np.float32(np.linspace(0.1, 9, 2001))
    expected = np.vectorize(math.erfc)(x.astype(np.float64))
    errors = {
        mode: np.max(np.abs(np.asarray(xla.jit(lambda x, mode=mode: lax.erfc(x, accuracy=mode))(x)) / expected - 1))
        for mode in (None, lax.AccuracyMode.DEFAULT, lax.AccuracyMode.HIGHEST, lax.Tolerance(rtol=1e-7))
    }
    default, same, highest, tolerance = errors.values()
    assert same == default > 1e-6 and highest == tolerance < 1.2e-7


def test_top_k_in_any_order():
    text = _text(lambda x: lax.top_k(x, 2, is_stable=False), np.ones(3, "f"))
    assert ("is_stable = false" in text) == has("chlo.top_k in any order")
    assert "is_stable" not in _text(lambda x: lax.top_k(x, 2), np.ones(3, "f"))


def test_polynomials_of_many_coefficients_are_loops():
    x = np.ones(3, "f")
    text = lambda n, **kw: _text(lambda x, *c: lax.polynomial(x, c, **kw), x, *[np.float32(1)] * n)
    assert text(8).count("stablehlo.multiply") == 7 and "while" not in text(8)
    assert (
        "stablehlo.while" in text(20) and "stablehlo.while" in text(12, unroll=2) and "while" not in text(20, unroll=20)
    )


def test_incomplete_gamma_functions_of_magnitudes_keep_nan():
    # XLA takes a comparison like ``abs(x) >= 0`` as true for every x.
    x = np.float32([np.nan, -1])
    for fun in (lax.igamma, lax.igammac):
        for size in (lax.abs, lax.square):
            out = np.asarray(xla.jit(lambda x, f=fun, size=size: f(lax.full_like(x, 0.5), size(x)))(x))
            assert np.isnan(out).tolist() == [True, False]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", ["sin", "cos", "sinh", "cosh", "exp2", "square"])
def test_complex_functions_keep_small_large_and_infinite_parts(name, dtype):
    info = np.finfo(dtype)
    parts = [0, 1e-20, 1e-4, 0.5, 2, 1.01 * math.log(float(info.max)), np.inf, np.nan]
    if name == "square":
        parts += [0.9 * float(info.max)]
    parts = np.array(parts + [-v for v in parts], info.dtype)
    x = np.empty((parts.size, parts.size), dtype)
    x.real, x.imag = parts[:, None], parts
    with np.errstate(all="ignore"):
        wide = np.clongdouble if np.finfo(np.longdouble).nmant > 60 else np.complex128
        exact = getattr(np, name)(x.astype(wide)).astype(dtype)
    with config.enable_x64(dtype is np.complex128):
        found = np.asarray(xla.jit(getattr(lax, name))(x))
    assert found.dtype == dtype
    # XLA's exponential of a NaN or of two infinite parts differs, as does a product of infinity and zero.
    finite = np.isfinite(x)
    plain = finite if name in ("exp2", "square") else np.ones_like(finite)
    rtol = (1000 if name == "exp2" else 40) * info.eps  # the angle of a power of 2 is rounded
    for part in ("real", "imag"):
        a, b = getattr(found, part)[plain], getattr(exact, part)[plain]
        signed = (finite & np.isfinite(exact))[plain]
        np.testing.assert_allclose(np.abs(a), np.abs(b), rtol=rtol, atol=info.tiny)
        if name != "exp2":  # XLA's exponential loses the sign of an imaginary part -0
            np.testing.assert_array_equal(np.signbit(a[signed]), np.signbit(b[signed]))


def test_complex_powers_of_two_have_infinite_parts():
    x = np.array([complex(np.inf, 0), complex(np.inf, 1), complex(-np.inf, 2)], np.complex64)
    expected = np.array([complex(np.inf, 0), complex(np.inf, np.inf), 0], np.complex64)
    np.testing.assert_array_equal(np.asarray(xla.jit(lax.exp2)(x)), expected)


def test_constants_that_were_unpickled():
    for dtype in (np.float64, np.int64, np.complex64, np.complex128):
        x = np.array([1, 2], dtype)
        assert str(types.dense(pickle.loads(pickle.dumps(x)))) == str(types.dense(x))
