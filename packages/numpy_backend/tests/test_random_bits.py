"""Random bits beyond the records: ranges, errors, streams."""

import numpy as np
import pytest

from bedrax import lax


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8"])
def test_rng_uniform_is_in_range(dtype):
    dtype = np.dtype(dtype) if dtype != "bfloat16" else __import__("ml_dtypes").bfloat16
    low, high = np.array(3, dtype), np.array(9, dtype)
    draws = np.asarray(lax.rng_uniform(low, high, (500,)))
    assert draws.shape == (500,) and draws.dtype == low.dtype
    values = draws.astype(np.float64)
    assert values.min() >= 3 and values.max() < 9 and values.std() > 1
    assert (values != np.asarray(lax.rng_uniform(low, high, (500,))).astype(np.float64)).any()


def test_errors():
    with pytest.raises(ValueError, match="the bounds have one dtype, got int"):
        lax.rng_uniform(np.int32(0), np.float32(1), (3,))
    with pytest.raises(ValueError, match="the bounds are scalars, got shapes"):
        lax.rng_uniform(np.zeros(2, "f"), np.float32(1), (3,))
    with pytest.raises(TypeError, match=r"uint32\[4\] or uint64\[2\]"):
        lax.rng_bit_generator(np.zeros(3, np.uint32), (2,))
    with pytest.raises(TypeError, match="no bits of dtype int"):
        lax.rng_bit_generator(np.zeros(4, np.uint32), (2,), np.int32)
    with pytest.raises(TypeError, match="takes keys and counts of uint"):
        lax.threefry2x32(*[np.zeros(2, np.int32)] * 4)


@pytest.mark.parametrize("algorithm", list(lax.RandomAlgorithm))
def test_the_new_key_continues_the_stream(algorithm):
    key = np.arange(4, dtype=np.uint32)
    _, together = lax.rng_bit_generator(key, (16,), algorithm=algorithm)
    middle, first = lax.rng_bit_generator(key, (8,), algorithm=algorithm)
    _, second = lax.rng_bit_generator(middle, (8,), algorithm=algorithm)
    np.testing.assert_array_equal(np.asarray(together), np.concatenate([np.asarray(first), np.asarray(second)]))
