"""Sets of values against NumPy, and of known size."""

import numpy as np
import pytest

import bedrax.numpy as jnp


def draw(*shape, dtype=np.float32, seed=0):
    x = np.random.default_rng([seed, *shape]).standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * np.random.default_rng([seed + 1, *shape]).standard_normal(shape)
    return x.astype(dtype)


def integers(n, *shape, seed=0):
    return np.random.default_rng([seed, n, *shape]).integers(0, n, shape).astype(np.int32)


def same(found, expected, tolerance=1e-4):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            same(f, e, tolerance)
        return
    found = np.asarray(found)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def check(name, *args, numpy=None, **kwargs):
    """Compare a function with NumPy's of the same name, or with another one."""
    same(getattr(jnp, name)(*args, **kwargs), (numpy or getattr(np, name))(*args, **kwargs))


RETURNS = dict(return_index=True, return_inverse=True, return_counts=True)


@pytest.mark.parametrize("x", [draw(5, 6), integers(4, 5, 6), np.array([True, False, True]), integers(4, 0)])
def test_unique(x):
    check("unique", x)
    check("unique", x, **RETURNS)


def test_unique_slices():
    x = integers(3, 7, 2)
    flat = lambda a, **k: tuple(v.reshape(-1) if i == 2 else v for i, v in enumerate(np.unique(a, **k)))
    check("unique", x, axis=0, **RETURNS, numpy=flat)
    check("unique", integers(3, 2, 3, 5), axis=2)


def test_unique_nan():
    x = np.float32([np.nan, 1, np.nan, 2])
    check("unique", x, return_counts=True, return_inverse=True)
    check("unique", x, equal_nan=False)


def test_unique_of_known_size():
    x = np.array([3, 1, 1, 2])
    assert jnp.unique(x, size=5).tolist() == [1, 2, 3, 1, 1]
    values, index, inverse, counts = jnp.unique(x, size=5, fill_value=9, **RETURNS)
    assert values.tolist() == [1, 2, 3, 9, 9] and index.tolist() == [1, 3, 0, 1, 1]
    assert inverse.tolist() == [2, 0, 0, 1] and counts.tolist() == [2, 1, 1, 0, 0]
    values, counts = jnp.unique(np.array([2, 1]), size=1, return_counts=True)
    assert values.tolist() == [1] and counts.tolist() == [1]
    with pytest.raises(ValueError, match="fill_value must be specified"):
        jnp.unique(np.array([], np.int32), size=2)


def test_without_size_a_value_is_needed():
    from bedrax.core.errors import ConcretizationTypeError
    from bedrax.core.jitting import jit

    with pytest.raises(ConcretizationTypeError, match="pass size"):
        jit(jnp.unique)(np.array([1, 2]))
    assert jit(lambda x: jnp.unique(x, size=3))(np.array([2, 1, 2])).tolist() == [1, 2, 1]


def test_array_api_variants():
    x = np.array([[3, 1], [1, 2]])
    found, expected = jnp.unique_all(x), np.unique_all(x)
    assert found._fields == expected._fields
    same(tuple(found), tuple(expected))
    same(tuple(jnp.unique_counts(x)), tuple(np.unique_counts(x)))
    same(tuple(jnp.unique_inverse(x)), tuple(np.unique_inverse(x)))
    same(jnp.unique_values(x), np.unique(x))


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_operations(name):
    p, q, none = integers(9, 12), integers(9, 3, 4, seed=2), np.array([], np.int32)
    for a, b in ((p, q), (p.astype(np.float32), q), (p, none), (none, q), (none, none)):
        check(name, a, b)


def test_operations_of_known_size():
    assert jnp.union1d(np.array([1, 2]), np.array([2, 3]), size=5).tolist() == [1, 2, 3, 1, 1]
    values, i, j = jnp.intersect1d(np.array([1, 2, 3]), np.array([2, 3, 7]), size=4, return_indices=True)
    assert (values.tolist(), i.tolist(), j.tolist()) == ([2, 3, 2, 2], [1, 2, 3, 3], [0, 1, 3, 3])
    assert jnp.setdiff1d(np.array([1, 2, 3, 5]), np.array([2]), size=5).tolist() == [1, 3, 5, 0, 0]
    assert jnp.setxor1d(np.array([1, 2, 3]), np.array([2, 9]), size=5).tolist() == [1, 3, 9, 1, 1]
    check("intersect1d", integers(9, 12), integers(9, 8, seed=3), return_indices=True)
    check("setdiff1d", np.array([5, 3, 4]), np.array([3]), assume_unique=True)


@pytest.mark.parametrize("method", ["auto", "compare_all", "binary_search", "sort"])
def test_isin(method):
    p, q = integers(9, 12), integers(9, 3, 4, seed=2)
    for a, b in ((p, q[:1, :2]), (q, p[:2]), (p, np.array([], np.int32))):
        check("isin", a, b, method=method, numpy=lambda a, b, method: np.isin(a, b))
        check("isin", a, b, invert=True, method=method, numpy=lambda a, b, invert, method: np.isin(a, b, invert=True))
    with pytest.raises(ValueError, match="method is one of"):
        jnp.isin(p, q, method="guess")
