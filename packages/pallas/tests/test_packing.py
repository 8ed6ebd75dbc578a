"""Bits in elements of other widths, rolls, reshapes and convolutions of kernels for TPUs, against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core.jitting import jit
from bedrax.pallas import packing

RNG = np.random.default_rng(0)
BYTES = np.arange(256, dtype=np.uint8).reshape(8, 32)


@pytest.mark.parametrize(
    "old, new",
    [
        ("uint32", "int16"),
        ("int16", "uint32"),
        ("float32", "uint8"),
        ("int8", "float32"),
        ("float32", "int32"),
        ("bfloat16", "float32"),
    ],
)
def test_bits_along_the_last_axis_are_those_of_a_view(old, new):
    x = RNG.integers(0, 256, (4, 8 * np.dtype(jnp.dtype(old)).itemsize), np.uint8).view(jnp.dtype(old))
    np.testing.assert_array_equal(
        np.asarray(packing.bitcast(x, new, -1)).view(np.uint8), x.view(jnp.dtype(new)).view(np.uint8)
    )
    second = packing.bitcast(np.ascontiguousarray(x.T), new)
    np.testing.assert_array_equal(np.asarray(second).T.copy().view(np.uint8), x.view(np.uint8))
    back = packing.bitcast(packing.bitcast(x, new, -1), old, -1)
    np.testing.assert_array_equal(np.asarray(back).view(np.uint8), x.view(np.uint8))


def test_bitcast_of_half_bytes_and_its_errors():
    x = BYTES.view(np.int8)
    halves = packing.bitcast(x, jnp.int4, -1)
    assert halves.shape == (8, 64) and halves.dtype == jnp.int4
    low, high = (BYTES & 15).astype(np.int8), (BYTES >> 4).astype(np.int8)
    expected = np.stack([low, high], -1).reshape(8, 64)
    np.testing.assert_array_equal(halves.astype(np.int8), np.where(expected > 7, expected - 16, expected))
    np.testing.assert_array_equal(packing.bitcast(halves, jnp.uint8, 1), BYTES)
    for mistake in (
        lambda: packing.bitcast(np.zeros((3, 4), np.uint16), np.int32),
        lambda: packing.bitcast(np.zeros(4, np.uint16), np.int32),
        lambda: packing.bitcast(np.zeros((2, 2, 2), np.uint16), np.int32, 0),
        lambda: packing.bitcast(np.zeros((2, 2), np.uint8), np.bool_),
    ):
        with pytest.raises(ValueError, match="bitcast"):
            mistake()


def test_fields_of_bytes():
    x = BYTES
    four, two = packing.split_bits(x, (4, 2))
    signed = lambda v, w: np.where(v >= 1 << (w - 1), v.astype(int) - (1 << w), v)
    np.testing.assert_array_equal(four.astype(np.int32), signed(x & 15, 4))
    np.testing.assert_array_equal(two.astype(np.int32), signed(x >> 4 & 3, 2))
    assert (four.dtype, two.dtype) == (jnp.int4, jnp.int2)
    joined = packing.join_bits(two_bits=two, four_bits=four)
    assert joined.dtype == np.int8
    np.testing.assert_array_equal(joined, (x & 63).view(np.int8))
    np.testing.assert_array_equal(packing.join_bits(two_bits=two), x >> 4 & 3)
    parts = jit(packing.pack_fp6)(x.view(np.int8))
    assert [p.dtype for p in parts] == [jnp.int2, jnp.int4]
    np.testing.assert_array_equal(packing.unpack_fp6(*parts), x & 63)
    for mistake, error in (
        (lambda: packing.split_bits(x, (3,)), ValueError),
        (lambda: packing.split_bits(x, (4, 4, 2)), ValueError),
        (lambda: packing.split_bits(x.astype(np.int16), (4,)), TypeError),
        (lambda: packing.join_bits(), ValueError),
        (lambda: packing.join_bits(two_bits=four), TypeError),
        (lambda: packing.join_bits(two_bits=two[:1], four_bits=four), ValueError),
    ):
        with pytest.raises(error):
            mistake()


def test_arrays_in_one_and_apart():
    xs = [RNG.integers(-1000, 1000, (3, 4), np.int32) for _ in range(4)]
    packed = packing.pack_elementwise(xs, packed_dtype=np.int8)
    np.testing.assert_array_equal(
        np.asarray(packed)[..., None].view(np.uint8), np.stack([x.astype(np.int8).view(np.uint8) for x in xs], -1)
    )
    for i, x in enumerate(xs):
        one = packing.unpack_elementwise(packed, index=i, packed_dtype=np.int8, unpacked_dtype=np.int32)
        np.testing.assert_array_equal(one, x.astype(np.int8))
    floats = [RNG.normal(size=(3,)).astype(np.float32) for _ in range(2)]
    packed = packing.pack_elementwise(floats, packed_dtype=jnp.bfloat16)
    one = packing.unpack_elementwise(packed, index=1, packed_dtype=jnp.bfloat16, unpacked_dtype=np.float32)
    np.testing.assert_array_equal(one, floats[1].astype(ml_dtypes.bfloat16).astype(np.float32))
    for mistake in (
        lambda: packing.pack_elementwise(xs[:2], packed_dtype=np.int8),
        lambda: packing.pack_elementwise(floats, packed_dtype=np.int16),
        lambda: packing.unpack_elementwise(packed, index=2, packed_dtype=jnp.bfloat16, unpacked_dtype=np.float32),
    ):
        with pytest.raises(ValueError):
            mistake()


def test_random_rounding_is_right_on_average():
    x = np.float32([1 + 2**-9, -3.3, 1e-20, 0, np.inf, np.nan])
    bits = (np.arange(2**16, dtype=np.uint32) + 2**20)[:, None].repeat(len(x), 1)
    out = np.asarray(packing.stochastic_round(np.tile(x, (2**16, 1)), bits, target_dtype=jnp.bfloat16))
    out = out.astype(np.float64)
    np.testing.assert_allclose(out[:, :4].mean(0), x[:4].astype(np.float64), rtol=1e-6)
    np.testing.assert_array_equal(out[:, 4:], np.tile(x[4:], (2**16, 1)))
    assert len(np.unique(out[:, 0])) == 2
    with pytest.raises(NotImplementedError):
        packing.stochastic_round(x, bits[0], target_dtype=np.float16)
    with pytest.raises(TypeError):
        packing.stochastic_round(x, bits[0].astype(np.int32), target_dtype=jnp.bfloat16)


@given(st.integers(0, 20), st.integers(0, 1), st.integers(0, 9))
def test_rolls(shift, axis, stride):
    x = np.arange(24).reshape(4, 6)
    np.testing.assert_array_equal(packing.roll(x, shift, axis), np.roll(x, shift, axis))
    np.testing.assert_array_equal(packing.roll(x, jnp.int32(shift), axis), np.roll(x, shift, axis))
    moved = np.moveaxis(x, 1 - axis, 0)
    rows = np.stack([np.roll(row, shift + i * stride) for i, row in enumerate(moved)])
    strided = packing.roll(x, shift, axis, stride=stride, stride_axis=1 - axis)
    np.testing.assert_array_equal(strided, np.moveaxis(rows, 0, 1 - axis))


def test_wrong_arguments_of_roll_are_refused():
    x = np.zeros((2, 3))
    for options in (
        dict(shift=-1, axis=0),
        dict(shift=1, axis=-1),
        dict(shift=1, axis=0, stride=1),
        dict(shift=1, axis=0, stride=-1, stride_axis=1),
        dict(shift=1, axis=0, stride=1, stride_axis=0),
    ):
        with pytest.raises(ValueError, match="roll"):
            packing.roll(x, **options)


@pytest.mark.parametrize(
    "equation, sizes, expected",
    [
        ("abc->(ba)c", {}, lambda x: x.transpose(1, 0, 2).reshape(12, 4)),
        ("a(bc)d->(ab)cd", {"b": 3}, lambda x: x.reshape(6, 1, 4)),
        ("ab(cd)->cabd", {"d": 2}, lambda x: x.reshape(2, 3, 2, 2).transpose(2, 0, 1, 3)),
    ],
)
def test_axes_by_names(equation, sizes, expected):
    x = np.arange(24).reshape((4, 3, 2) if equation == "abc->(ba)c" else (2, 3, 4))
    if equation == "abc->(ba)c":
        x = x.reshape(4, 3, 2).transpose(0, 1, 2).reshape(4, 3, 2)
        np.testing.assert_array_equal(packing.einshape(equation, x), x.transpose(1, 0, 2).reshape(12, 2))
        return
    np.testing.assert_array_equal(packing.einshape(equation, x, **sizes), expected(x))


@pytest.mark.parametrize(
    "equation, sizes",
    [
        ("ab->a", {}),
        ("aa->aa", {}),
        ("a->a", {}),
        ("a(bc)->abc", {}),
        ("a(bc)->abc", {"b": 5}),
        ("ab->ba", {"z": 1}),
        ("ab", {}),
    ],
)
def test_equations_that_do_not_fit(equation, sizes):
    with pytest.raises(ValueError, match="einshape"):
        packing.einshape(equation, np.zeros((2, 6)), **sizes)


def test_a_convolution_is_added_to_an_accumulator():
    x, w = RNG.normal(size=(2, 5, 6, 3)).astype(np.float32), RNG.normal(size=(2, 3, 3, 4)).astype(np.float32)
    numbers = ("NHWC", "HWIO", "NHWC")
    expected = np.zeros((2, 4, 4, 4), np.float32)
    for i in range(4):
        for j in range(4):
            expected[:, i, j] = np.einsum("nhwc,hwco->no", x[:, i : i + 2, j : j + 3], w)
    np.testing.assert_allclose(packing.conv(x, w, dimension_numbers=numbers), expected, rtol=1e-4, atol=1e-5)
    acc = np.ones_like(expected)
    out = packing.conv(
        x, w[::-1].copy(), acc, dimension_numbers=numbers, window_reversal=(True, False), padding="VALID"
    )
    np.testing.assert_allclose(out, expected + 1, rtol=1e-4, atol=1e-5)
    wide = packing.conv(x, w, dimension_numbers=numbers, padding="SAME", window_strides=(2, 2))
    same = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=numbers)
    np.testing.assert_array_equal(wide, same)
    for options in (dict(acc=acc[:1]), dict(window_reversal=(True,))):
        with pytest.raises(ValueError, match="conv"):
            packing.conv(x, w, dimension_numbers=numbers, **options)
