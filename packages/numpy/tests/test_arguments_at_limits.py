"""Arguments at their limits: empty matrices, axes in arrays, dtypes without infinities, wrong arguments."""

import ml_dtypes
import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core.errors import ConcretizationTypeError
from bedrax.core.jitting import jit


def test_minus_one_with_an_axis_of_size_0_is_refused():
    for shape in ((0, -1), (-1, 0)):
        with pytest.raises(ValueError, match="no definite value"):
            jnp.reshape(np.zeros((0, 3)), shape)
    assert jnp.reshape(np.zeros((0, 3)), (-1, 3)).shape == (0, 3)


def test_an_axis_in_an_array_of_rank_0_is_one_axis():
    assert jnp.sum(np.ones((2, 3)), axis=np.array(1)).tolist() == [3, 3]
    assert jnp.expand_dims(np.ones(3), jnp.array(1)).shape == (3, 1)


def test_nan_reductions_of_a_dtype_without_infinities():
    x = np.array([np.nan, 3, -7], ml_dtypes.float8_e4m3fn)
    assert (jnp.nanmax(x), jnp.nanmin(x), jnp.nanargmax(x), jnp.nanargmin(x)) == (3, -7, 1, 2)
    assert np.isnan(jnp.nanmax(x[:1]))


def test_matrices_without_elements():
    for shape, p in (((0, 0), 1), ((0, 0), None), ((2, 0), -2)):
        with pytest.raises(ValueError, match="without elements"):
            jnp.linalg.cond(np.zeros(shape, np.float32), p)
    assert jnp.linalg.matrix_rank(np.zeros((2, 0, 3), np.float32), rtol=0.1).tolist() == [0, 0]


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="axis -1 is out of bounds"):
        jnp.linalg.cross(3, 3)
    with pytest.raises(ConcretizationTypeError, match=r"roots\(\.\.\., strip_zeros=True\)"):
        jit(jnp.roots)(np.ones(3, np.float32))
    with pytest.raises(TypeError, match="scan: length is an int"):
        lax.scan(lambda c, x: (c, x), 0.0, None, length=1.5)
    with pytest.raises(IndexError, match="elems has no arrays"):
        lax.associative_scan(lax.add, [])
