"""Arguments at the edges of their kinds: narrow dtypes, no elements, NaN, and numbers that do not fit."""

import warnings

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core.jitting import jit

NARROW = [np.int8, np.uint8, np.int16, np.uint16, np.uint32]


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("size", [10, 200, 300])
def test_positions_of_narrow_integers_count_along_a_longer_axis(dtype, size):
    x = np.arange(size)
    i = np.array([1, 0, 100 % size], dtype)
    for by in i:
        np.testing.assert_array_equal(jnp.roll(x, jnp.asarray(by)), np.roll(x, by))
        np.testing.assert_array_equal(jit(jnp.roll)(x, by), np.roll(x, by))
    np.testing.assert_array_equal(jnp.take(x, jnp.asarray(i), mode="wrap"), np.take(x, i.astype(int), mode="wrap"))
    wide = np.take(x, i.astype(int), mode="clip")
    np.testing.assert_array_equal(jnp.take(x, jnp.asarray(i), mode="clip"), wide)
    for mode in (None, "wrap", "clip"):
        expected = x.copy()
        np.put(expected, i.astype(int), [7, 8, 9], mode=mode or "raise")
        np.testing.assert_array_equal(jnp.put(x, jnp.asarray(i), np.array([7, 8, 9]), mode, inplace=False), expected)
        if mode is not None:
            choices = [np.full(3, k) for k in range(size)]
            found = jnp.choose(jnp.asarray(i), choices, mode=mode)
            np.testing.assert_array_equal(found, i.astype(int))
    flat = np.array([1, 100 % size], dtype)
    np.testing.assert_array_equal(jnp.unravel_index(jnp.asarray(flat), (size, 2)), np.unravel_index(flat, (size, 2)))
    pair = (np.array([9], dtype), np.array([9], dtype))
    for mode in ("raise", "wrap", "clip"):
        found = jnp.ravel_multi_index(tuple(map(jnp.asarray, pair)), (size, 50), mode=mode)
        np.testing.assert_array_equal(found, np.ravel_multi_index(pair, (size, 50), mode=mode))


def test_a_negative_position_of_roll_and_unravel_index_counts_along_a_longer_axis():
    x = np.arange(200)
    np.testing.assert_array_equal(jnp.roll(x, jnp.int8(-3)), np.roll(x, -3))
    assert [int(v[0]) for v in jnp.unravel_index(jnp.array([-1], jnp.int8), (20, 20))] == [19, 19]


def test_a_negative_position_of_put_counts_from_the_end():
    found = jnp.put(jnp.arange(4), jnp.array([-1, -9, 9]), jnp.array([7, 8, 9]), inplace=False)
    np.testing.assert_array_equal(found, [8, 1, 2, 9])
    found = jnp.put(jnp.arange(4), jnp.array([-1]), 7, inplace=False)
    expected = np.arange(4)
    np.put(expected, [-1], 7)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(jnp.put(jnp.arange(4), jnp.array([-1]), 7, "clip", inplace=False), [7, 1, 2, 3])


@pytest.mark.parametrize("where", [True, False, [True, False], [[True], [True]]])
def test_booleans_as_positions_are_0_and_1(where):
    where = jnp.array(where)
    for mode in (None, "wrap", "clip"):
        expected = np.arange(4)
        np.put(expected, np.asarray(where), 7, mode=mode or "raise")
        np.testing.assert_array_equal(jnp.put(jnp.arange(4), where, 7, mode, inplace=False), expected)
        found = jnp.take(jnp.arange(5, 9), where, mode=mode)
        np.testing.assert_array_equal(found, np.take(np.arange(5, 9), np.asarray(where)))
    for function in (jnp.take, lambda x, i: jnp.put(x, i, 7, inplace=False)):
        with pytest.raises(TypeError, match="requires integer indices, got float32"):
            function(jnp.arange(4), jnp.ones(2))


@pytest.mark.parametrize("size", [0, 3, 200])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint32, np.int32])
def test_insert_clips_positions_that_are_out_of_bounds(size, dtype):
    x = np.arange(size)
    limits = np.iinfo(dtype)
    for place in (limits.min, -2, 0, 2, size + 1, limits.max):
        if not limits.min <= place <= limits.max:
            continue
        inside = min(max(int(place) + size if place < 0 else int(place), 0), size)
        expected = np.insert(x, inside, 7)
        np.testing.assert_array_equal(jnp.insert(x, dtype(place), 7), expected)
        np.testing.assert_array_equal(jnp.insert(x, jnp.array([place], dtype), 7), expected)
        np.testing.assert_array_equal(jit(jnp.insert)(x, dtype(place), 7), expected)
    places = jnp.array([limits.max, 0], dtype)
    outside = np.clip([limits.max, 0], 0, size)
    np.testing.assert_array_equal(jnp.insert(x, places, jnp.array([7, 8])), np.insert(x, outside, [7, 8]))


_SQUARE = np.ones((3, 3))
_TAKING_AN_INTEGER = {
    "tril k": lambda k: jnp.tril(_SQUARE, k),
    "triu k": lambda k: jnp.triu(_SQUARE, k),
    "tri k": lambda k: jnp.tri(3, k=k),
    "eye k": lambda k: jnp.eye(3, k=k),
    "diag k": lambda k: jnp.diag(_SQUARE, k),
    "diagflat k": lambda k: jnp.diagflat(_SQUARE, k),
    "diagonal offset": lambda k: jnp.diagonal(_SQUARE, k),
    "trace offset": lambda k: jnp.trace(_SQUARE, k),
    "tril_indices n": lambda n: jnp.tril_indices(n),
    "tril_indices k": lambda k: jnp.tril_indices(3, k),
    "triu_indices m": lambda m: jnp.triu_indices(3, m=() if m is None else m),
    "tril_indices_from k": lambda k: jnp.tril_indices_from(_SQUARE, k),
    "triu_indices_from k": lambda k: jnp.triu_indices_from(_SQUARE, k),
    "diag_indices n": jnp.diag_indices,
    "diag_indices ndim": lambda n: jnp.diag_indices(3, n),
    "rot90 k": lambda k: jnp.rot90(_SQUARE, k),
    "vander N": lambda n: jnp.vander(_SQUARE[0], () if n is None else n),
}


@pytest.mark.parametrize("case", _TAKING_AN_INTEGER)
def test_the_number_of_a_diagonal_is_an_integer(case):
    name, argument = case.split()
    for wrong in ((1, 0), (), [1], 1.5, None, "a", np.ones(2, int)):
        with pytest.raises(TypeError, match=rf"^{argument} argument to jnp\.{name} must be an integer, got "):
            _TAKING_AN_INTEGER[case](wrong)
    for right in (np.int8(1), jnp.uint8(1)):
        np.testing.assert_array_equal(np.asarray(_TAKING_AN_INTEGER[case](right)), _TAKING_AN_INTEGER[case](1))


def test_a_traced_number_of_a_diagonal_is_an_integer():
    for function, what in ((jnp.tril, "k"), (jnp.triu, "k"), (jnp.trace, "offset")):
        with pytest.raises(TypeError, match=f"^{what} argument to .* must be an integer, got ~float32"):
            jit(function)(_SQUARE, 1.5)
        for k in (np.uint8(0), np.int8(-128), np.uint8(255)):
            np.testing.assert_array_equal(
                jit(function)(_SQUARE, k), getattr(np, function.__name__)(_SQUARE, int(k)), function.__name__
            )


def test_fill_diagonal_without_values_replaces_nothing():
    np.testing.assert_array_equal(jnp.fill_diagonal(_SQUARE, np.ones(0), inplace=False), _SQUARE)


def test_tensordot_over_a_negative_number_of_axes_is_the_outer_product():
    x, y = np.arange(6).reshape(2, 3), np.arange(4)
    for axes in (0, -1, -5):
        np.testing.assert_array_equal(jnp.tensordot(x, y, axes), np.tensordot(x, y, axes))


@pytest.mark.parametrize("shift", [1.0, -1.5, True, np.float16(2), np.bool_(True), (), [], (1, 2), (1, 2.5)])
@pytest.mark.parametrize("axis", [None, 0, (), [], (0, 1)])
def test_roll_pairs_shifts_and_axes_as_numpy(shift, axis):
    x = np.arange(6).reshape(2, 3)
    try:
        expected = np.roll(x, shift, axis)
    except ValueError:
        with pytest.raises(ValueError, match="equal length"):
            jnp.roll(x, shift, axis)
        return
    np.testing.assert_array_equal(jnp.roll(x, shift, axis), expected)
    np.testing.assert_array_equal(jit(lambda s: jnp.roll(x, s, axis))(shift), expected)
    if not isinstance(shift, tuple):
        np.testing.assert_array_equal(jnp.roll(x, jnp.array(shift), axis), expected)


def test_roll_refuses_complex_shifts():
    with pytest.raises(TypeError, match="integers to shift by, got complex64"):
        jnp.roll(np.arange(3), 1j)


@pytest.mark.parametrize("split", [jnp.split, jnp.array_split, jnp.vsplit])
def test_split_takes_a_whole_float_and_refuses_others(split):
    x = np.arange(6).reshape(2, 3)
    for sections in (2.0, np.float32(2), jnp.float32(2), np.array(2.0)):
        np.testing.assert_array_equal(np.asarray(split(x, sections)), np.split(x, 2))
    assert len(split(x, np.True_)) == len(split(x, np.array([]))) == 1
    for wrong in (1.5, np.nan, np.inf, None, 1j, "ab", [1.0], np.array([1.0]), jnp.array([1.5]), np.array([[1]])):
        with pytest.raises(TypeError, match=rf"^jnp\.{split.__name__} takes a number of parts or a sequence of points"):
            split(x, wrong)


def test_the_dtype_of_a_variance_is_inexact():
    for name in ("var", "std", "nanvar", "nanstd"):
        for x in (np.arange(4), np.arange(4, dtype=np.float32)):
            with pytest.raises(ValueError, match=rf"^jnp\.{name}: dtype argument must be inexact, got int8"):
                getattr(jnp, name)(x, dtype="int8")


def test_an_open_grid_is_a_list():
    grid = jnp.ogrid[:2, :3]
    assert type(grid) is list and [a.shape for a in grid] == [(2, 1), (1, 3)]
    for found, expected in zip(grid, np.ogrid[:2, :3], strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.bool_, np.float16])
def test_einsum_sums_one_operand_in_the_dtype_of_the_result(dtype):
    x = np.full(4096, 100).astype(dtype)
    wide = np.int32 if np.dtype(dtype).kind in "iub" else np.float32
    expected = x.astype(np.float64).sum()
    assert jnp.einsum("i->", x, preferred_element_type=wide) == expected
    np.testing.assert_array_equal(jnp.einsum("i,j->j", x, np.ones(2, wide)), [expected] * 2)


@pytest.mark.parametrize("axis", [0, 1, 2, None])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (3, 2), (2, 3, 2), (2, 2, 2), (3, 2, 1)])
def test_values_of_one_place_of_insert_have_the_axes_of_numpy(axis, shape):
    x, values = np.zeros((2, 3, 2)), np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape)
    try:
        expected = np.insert(x, 1, values, axis)
    except ValueError:
        with pytest.raises(ValueError):
            jnp.insert(x, 1, values, axis)
    else:
        np.testing.assert_array_equal(jnp.insert(x, 1, values, axis), expected)


def test_least_squares_of_a_matrix_of_zeros_are_zeros():
    for rcond in (None, 0.0):
        x, residuals, rank, s = jnp.linalg.lstsq(jnp.zeros((3, 2)), jnp.ones(3), rcond)
        np.testing.assert_array_equal(x, [0, 0])
        np.testing.assert_array_equal(s, [0, 0])
        assert residuals[0] == 3 and rank == 0


@pytest.mark.parametrize(
    "pair", [([np.nan], [np.nan]), ([np.nan, 1, np.nan], [1.0]), ([2.0, 1], [np.nan, 2, np.nan]), ([1.0, 3], [3.0])]
)
def test_a_nan_is_in_one_set_only(pair):
    a, b = map(np.array, pair)
    np.testing.assert_array_equal(jnp.setxor1d(a, b), np.setxor1d(a, b))
    np.testing.assert_array_equal(
        jit(lambda a, b: jnp.setxor1d(a, b, size=4, fill_value=9))(a, b)[: len(np.setxor1d(a, b))], np.setxor1d(a, b)
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, jnp.int4])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e20, -1e20, 300.5, -1.0, 16777217.0, 2.75])
def test_a_float_of_the_host_becomes_an_integer_as_in_a_program(dtype, value):
    info = jnp.iinfo(dtype)
    expected = 0 if np.isnan(value) else int(np.clip(np.trunc(value), info.min, info.max))
    made = [
        jnp.array(value, dtype),
        jnp.array([value], dtype)[0],
        jnp.array(np.float64(value), dtype),
        jnp.array(np.array([value]), dtype)[0],
        jnp.full((), value, dtype),
        jnp.full_like(jnp.zeros((), dtype), value),
        lax.convert_element_type(value, dtype),
        lax.convert_element_type(np.array(value), dtype),
        jit(lambda: jnp.full((), value, dtype))(),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        if dtype is not jnp.int4:  # which combines with no float
            made.append(jnp.zeros(1, dtype).at[0].set(value)[0])
    assert [int(x) for x in made] == [expected] * len(made)


MIXED = [
    ([np.int8(1), 300], OverflowError),
    ([np.int8([1]), [300]], OverflowError),
    ([np.uint8(1), -1], OverflowError),
    ([np.bool_(True), 2**31], OverflowError),
    ([jnp.int8(1), 300], OverflowError),
    ([[jnp.uint8(1)], [jnp.uint8(2)], -1], ValueError),
    ([np.int8(1), 100], np.int8),
    ([jnp.int8(1), -100], np.int8),
    ([np.int8(1), 300, 0.5], np.float32),
]


@pytest.mark.parametrize(("items", "expected"), MIXED, ids=str)
def test_a_python_int_in_a_list_fits_the_dtype_of_the_other_elements(items, expected):
    if issubclass(expected, Exception):
        with pytest.raises(expected):
            jnp.array(items)
    else:
        found = jnp.array(items)
        assert found.dtype == expected
        np.testing.assert_array_equal(found, np.array([float(v) for v in items]))


FOLDS = [
    ("logaddexp", np.array([1, 2, 3])),
    ("logical_xor", np.array([2, 3, 4])),
    ("logical_xor", np.array([2])),
    ("logical_and", np.array([2.5, 3, 0])),
    ("logical_or", np.array([0, 3, 0], np.int8)),
    ("subtract", np.array([5, 3, 1])),
]


@pytest.mark.parametrize(("name", "x"), FOLDS, ids=str)
def test_a_fold_has_the_dtype_of_the_results_of_its_function(name, x):
    ours, theirs = getattr(jnp, name), getattr(np, name)
    for method, more in (("reduce", ()), ("accumulate", ()), ("reduceat", (np.array([0]),))):
        found, expected = getattr(ours, method)(x, *more), getattr(theirs, method)(x, *more)
        assert found.dtype.kind == expected.dtype.kind, method
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_reduceat_with_narrow_positions():
    x = np.arange(300)
    np.testing.assert_array_equal(jnp.add.reduceat(x, np.array([0, 10], np.uint8)), np.add.reduceat(x, [0, 10]))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum"])
def test_at_of_a_function_of_two_operands_needs_both(name):
    with pytest.raises(TypeError, match="second"):
        getattr(jnp, name).at(jnp.arange(3), 0, inplace=False)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16, np.float32])
def test_integers_are_divided_by_floats_and_raised_to_them(dtype):
    x = jnp.array([16, 20], dtype)
    np.testing.assert_allclose(x.at[0].divide(2.5), [6.4, 20])
    np.testing.assert_allclose(x.at[0].divide(np.float32(640)), [0.025, 20])
    np.testing.assert_allclose(x.at[0].power(0.5), [4, 20])
    np.testing.assert_allclose(x.at[jnp.array([0, 0])].divide([2.5, 2]), [3.2, 20])
    assert x.at[0].power(2 if dtype != np.int8 else 1).dtype == dtype


def test_weights_of_bincount_that_are_booleans_are_counted():
    x, w = np.array([1, 1, 0]), np.array([True, True, False])
    np.testing.assert_array_equal(jnp.bincount(x, w), np.bincount(x, w))


@pytest.mark.parametrize("discont", [None, 1, 1.5, 2, 2.5, 3.0])
def test_unwrap_of_integers_has_a_limit_that_is_a_float(discont):
    p = np.array([0, 2, 4, 9, 7])
    np.testing.assert_array_equal(jnp.unwrap(p, discont, period=3), np.unwrap(p, discont, period=3))


def test_interp_at_nan_is_nan():
    xp, fp = np.array([1.0, 2, 2]), np.array([1.0, 2, 3])
    np.testing.assert_array_equal(jnp.interp(np.nan, xp, fp), np.interp(np.nan, xp, fp))


@pytest.mark.parametrize("beta", [0, 14, np.float16(14), 50.0, 100.0, 300.0, -100.0])
def test_kaiser_of_a_large_parameter(beta):
    np.testing.assert_allclose(jnp.kaiser(7, beta), np.kaiser(7, float(beta)), rtol=1e-4, atol=1e-30)


@pytest.mark.parametrize("shape", [(2, 0), (0, 2), (0, 0), (3, 2, 0)])
@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, 2, np.inf])
def test_norms_of_matrices_without_elements_are_zero(shape, order):
    found = jnp.linalg.norm(jnp.zeros(shape), order, axis=(-2, -1))
    np.testing.assert_array_equal(found, np.linalg.norm(np.zeros(shape), order, axis=(-2, -1)))


FAR = [2**31 - 1, -(2**31), 2**40, -(2**40), 2**31 - 3]


@pytest.mark.parametrize("k", FAR)
def test_a_diagonal_far_outside(k):
    x = np.arange(1.0, 13).reshape(3, 4)
    for kind in (int, np.int64):
        k = kind(k)
        for name in ("tril", "triu"):
            np.testing.assert_array_equal(getattr(jnp, name)(x, k), getattr(np, name)(x, k))
        np.testing.assert_array_equal(jnp.tri(3, 4, k), np.tri(3, 4, k))
        np.testing.assert_array_equal(jnp.eye(3, 4, k), np.zeros((3, 4)))
        assert jnp.diagonal(x, k).shape == (0,) and jnp.trace(x, k) == 0
    if -(2**31) <= k < 2**31:
        np.testing.assert_array_equal(jit(lambda k: jnp.tri(3, 4, k))(np.int32(k)), np.tri(3, 4, k))
        assert jit(jnp.trace)(x, np.int32(k)) == 0 == jit(lambda k: jnp.eye(3, 4, k))(np.int32(k)).sum()


def test_the_extreme_position_of_complex_numbers_with_nan_is_that_of_the_first_nan():
    x = np.array([[1 + 1j, complex(0, np.nan), 5], [complex(np.nan, 0), 2, np.nan], [2, 1j, 1]])
    for name in ("argmax", "argmin"):
        np.testing.assert_array_equal(getattr(jnp, name)(x, axis=1), getattr(np, name)(x, axis=1))


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16, np.float32, np.complex64])
def test_round_to_more_digits_than_a_float_has(dtype):
    x = jnp.array([1.5, -2.25, 0], dtype)
    for decimals in (40, 400):
        np.testing.assert_array_equal(jnp.round(x, decimals), x)
        np.testing.assert_array_equal(jnp.round(x, -decimals), jnp.zeros(3, dtype))
