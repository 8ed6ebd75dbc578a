"""Arguments at their limits: empty matrices, axes in arrays, dtypes without infinities, wrong arguments."""

import ml_dtypes
import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.core.errors import ConcretizationTypeError
from bedrax.core.jitting import jit
from bedrax.numpy.flatten_util import ravel_pytree
from bedrax.pytree import tree_leaves


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
    for length in (1.5, np.nan, np.inf, "2"):
        with pytest.raises(TypeError, match="scan: length must be an integer"):
            lax.scan(lambda c, x: (c, x), 0.0, None, length=length)
    with pytest.raises(IndexError, match="elems has no arrays"):
        lax.associative_scan(lax.add, [])


@pytest.mark.parametrize("number", [3, 3.0, np.float32(3), np.float64(3), np.uint8(3)])
def test_a_computed_count_may_be_a_float_without_a_fraction(number):
    assert lax.scan(lambda c, x: (c + 1, c), 0, None, length=number)[1].tolist() == [0, 1, 2]
    assert jnp.hanning(number).tolist() == [0, 1, 0]


X, M = np.arange(4, dtype=np.int32), np.ones((2, 2), np.float32)
FRACTIONS = {
    "axis": [
        lambda: jnp.sum(X, 0.5),
        lambda: jnp.cumsum(X, 0.5),
        lambda: jnp.sort(X, 0.5),
        lambda: jnp.argmax(X, 0.5),
        lambda: jnp.stack([X, X], 0.5),
        lambda: jnp.concatenate([X, X], 0.5),
        lambda: jnp.take(X, 0, 0.5),
        lambda: jnp.expand_dims(X, 0.5),
        lambda: jnp.swapaxes(M, 0.5, 1),
        lambda: jnp.moveaxis(M, 0.5, 1),
        lambda: jnp.squeeze(M[:1], 0.5),
        lambda: jnp.flip(M, 0.5),
        lambda: jnp.fft.fft(X, axis=0.5),
    ],
    "n": [lambda: jnp.diff(X, 0.5), lambda: jnp.fft.rfft(X, 0.5)],
    "length": [lambda: jnp.bincount(X, length=0.5)],
    "minlength": [lambda: jnp.bincount(X, minlength=0.5)],
    "size": [lambda: jnp.unique(X, size=0.5)],
    "bins": [lambda: jnp.histogram(X, 0.5)],
    "deg": [lambda: jnp.polyfit(X, X, 0.5)],
    "M": [lambda: jnp.kaiser(0.5, 1.0)],
}


@pytest.mark.parametrize("name, call", [(name, call) for name, calls in FRACTIONS.items() for call in calls])
def test_a_fraction_in_place_of_an_integer_is_named(name, call):
    with pytest.raises(TypeError, match=rf"\b{name} must be an integer, got 0.5 of type float"):
        call()


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: jnp.repeat(X, 1.5), TypeError),
        (lambda: jnp.repeat(X, [1.5] * 4), TypeError),
        (lambda: jnp.repeat(X, np.full(4, 1.5), total_repeat_length=4), TypeError),
        (lambda: jnp.delete(X, 1.0), ValueError),
        (lambda: jnp.delete(X, np.array([1.0])), ValueError),
    ],
)
def test_counts_and_positions_that_are_fractions_are_refused(call, error):
    with pytest.raises(error, match="integers"):
        call()


def test_no_counts_and_no_positions():
    assert jnp.repeat(X[:0], []).shape == (0,)
    assert jnp.delete(X, np.array([])).shape == (4,)


def test_ravel_pytree_of_types():
    """The function back to the tree needs types only. The vector is a type then."""
    given = {"a": ShapeDtypeStruct((2, 2), np.float32), "b": np.ones(1, np.int32)}
    vector, unravel = ravel_pytree(given)
    assert (vector.shape, vector.dtype) == ((5,), np.float32)
    assert [(x.shape, x.dtype) for x in tree_leaves(unravel(np.arange(5, dtype=np.float32)))] == [
        ((2, 2), np.float32),
        ((1,), np.int32),
    ]


def test_functions_that_unravel_like_trees_are_equal():
    def unravel(*leaves):
        return ravel_pytree(list(leaves))[1]

    x, n = np.ones((2, 1), np.float32), np.ones(2, np.int32)
    one, other = unravel(x, n), unravel(2 * x, jnp.zeros_like(n))
    assert one == other and hash(one) == hash(other) and unravel() == unravel()
    assert [a.tolist() for a in other(np.arange(4, dtype=np.float32))] == [[[0], [1]], [2, 3]]
    for different in (unravel(x, x), unravel(x.T, n), unravel(n, x), unravel(x), ravel_pytree((x, n))[1]):
        assert one != different
    traces = []
    f = jit(lambda unravel, v: traces.append(v) or unravel(v), static_argnums=0)
    f(one, np.zeros(4, np.float32)), f(other, np.zeros(4, np.float32))
    assert len(traces) == 1
