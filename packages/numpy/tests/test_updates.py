"""Changed copies of arrays: `x.at[...]`."""

import numpy as np
import pytest

import bedrax.numpy as jnp


@pytest.mark.parametrize("index", [-1, np.array([-1])], ids=["a position", "an array"])
def test_negative_indices_that_do_not_wrap_are_outside(index):
    x = jnp.arange(4.0)
    np.testing.assert_array_equal(x.at[index].set(9.0, wrap_negative_indices=False), x)
    np.testing.assert_array_equal(x.at[index].add(9.0, wrap_negative_indices=False), x)
    assert np.all(np.isnan(x.at[index].get(wrap_negative_indices=False, mode="fill")))
    np.testing.assert_array_equal(x.at[index].set(9.0), [0, 1, 2, 9])
