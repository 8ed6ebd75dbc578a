"""Arguments at the edges of their kinds: narrow dtypes, no elements, NaN, and numbers that do not fit."""

import numpy as np
import pytest

import bedrax.numpy as jnp
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
