"""Sorting and searching against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bedrax.numpy as jnp
from bedrax.autodiff import grad
from bedrax.core.passes import all_equations, programs_in
from bedrax.core.staging import make_jaxpr


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


@pytest.mark.parametrize(
    "x", [draw(5, 6), integers(4, 5, 6), (integers(2, 8) + 1j * integers(2, 8, seed=1)).astype(np.complex64)]
)
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_sort_and_argsort(x, axis):
    check("sort", x, axis=axis)
    check("argsort", x, axis=axis, numpy=lambda v, axis: np.argsort(v, axis, kind="stable"))
    down = np.asarray(jnp.sort(x, axis=axis, descending=True))
    np.testing.assert_array_equal(down, np.flip(np.sort(x, axis), 0 if axis is None else axis))


def test_descending_positions_of_equal_elements():
    x = np.array([3, 1, 3, 2])
    assert jnp.argsort(x, descending=True).tolist() == [0, 2, 3, 1]
    assert jnp.argsort(x, descending=True, stable=False).tolist() == [2, 0, 3, 1]


def test_refused_arguments():
    with pytest.raises(TypeError, match="pass stable=True"):
        jnp.sort(np.ones(2), kind="quicksort")
    with pytest.raises(TypeError, match="names fields"):
        jnp.argsort(np.ones(2), order="f")
    with pytest.raises(ValueError, match="side is one of"):
        jnp.searchsorted(np.ones(2), 1.0, side="middle")
    with pytest.raises(ValueError, match="method is one of"):
        jnp.searchsorted(np.ones(2), 1.0, method="guess")
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.partition(np.ones(2), 2)


def test_lexsort():
    check("lexsort", (integers(3, 10), integers(3, 10, seed=1), integers(2, 10)))
    check("lexsort", integers(3, 2, 10))
    check("lexsort", (integers(3, 4, 10), integers(3, 4, 10, seed=1)), axis=0)


@given(st.integers(1, 7), st.integers(1, 9), st.sampled_from([-1, 0]))
def test_lexsort_in_batches(size, count, axis):
    keys = [integers(2, 4, 6, seed=i) for i in range(count)]
    check("lexsort", keys, axis=axis, numpy=lambda k, axis, batch_size: np.lexsort(k, axis), batch_size=size)
    mixed = [*keys, draw(4, 6)]
    check("lexsort", mixed, axis=axis, numpy=lambda k, axis, batch_size: np.lexsort(k, axis), batch_size=size)


def test_each_sort_of_lexsort_in_batches_has_at_most_batch_size_keys():
    def sorts(program):
        for eqn in program.eqns:
            if eqn.primitive.name == "sort":
                yield eqn.params["num_keys"]
            for p in eqn.params.values():
                if hasattr(p, "eqns") or hasattr(p, "jaxpr"):
                    yield from sorts(getattr(p, "jaxpr", p))

    keys = [integers(2, 6, seed=i) for i in range(8)]
    found = {n: list(sorts(make_jaxpr(lambda *k, n=n: jnp.lexsort(k, batch_size=n))(*keys).jaxpr)) for n in (3, 4, 8)}
    assert found == {3: [2, 3], 4: [4], 8: [8]}
    with pytest.raises(ValueError, match="batch_size is positive"):
        jnp.lexsort(keys, batch_size=0)


TOP = [
    draw(3, 7),
    integers(4, 3, 7),
    integers(256, 3, 7).astype(np.uint8),
    draw(3, 7).astype(np.float16),
    np.array([[-128, 3, 127, -128]], np.int8),
    integers(2, 3, 7).astype(bool),
    np.array([1, np.inf, -np.inf, -0.0, 2], "f"),
]


@pytest.mark.parametrize("x", TOP, ids=lambda x: f"{x.dtype}{x.ndim}")
@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("ordered", [True, False])
def test_top_k(x, axis, ordered):
    size = x.shape[axis]
    for k in {0, 1, size}:
        key = x.astype(np.float64)
        for mode, order in (("largest", -key), ("smallest", key)):
            values, at = jnp.top_k(x, k, axis=axis, mode=mode, sorted=ordered)
            expected = np.take(np.argsort(order, axis, kind="stable"), range(k), axis)
            same(at, expected)
            same(values, np.take_along_axis(x, expected, axis))
            assert values.dtype == x.dtype and at.dtype == np.int32


def test_top_k_orders_nan_by_sign():
    x = np.float32([1, np.nan, 3, np.copysign(np.nan, -1)])
    assert np.asarray(jnp.top_k(x, 4)[1]).tolist() == [1, 2, 0, 3]
    assert np.asarray(jnp.top_k(x, 4, mode="smallest")[1]).tolist() == [3, 0, 2, 1]


def test_top_k_refuses():
    for error, match, args, kwargs in (
        (ValueError, "'largest', 'smallest', got 'most'", (draw(3), 1), {"mode": "most"}),
        (ValueError, "more than", (draw(3), 4), {}),
        (ValueError, "not negative", (draw(3), -1), {}),
        (ValueError, "real", (draw(3, dtype=np.complex64), 1), {}),
        (TypeError, "top_k", ([1, 2], 1), {}),
    ):
        with pytest.raises(error, match=match):
            jnp.top_k(*args, **kwargs)


def test_derivative_of_top_k():
    x = np.float32([3, 1, 2])
    same(grad(lambda v: jnp.sum(jnp.top_k(v, 2, mode="smallest")[0] * np.float32([1, 10])))(x), np.float32([0, 1, 10]))


def test_partition():
    x = draw(4, 9)
    for k in (0, 3, -2):
        p = np.asarray(jnp.partition(x, k))
        np.testing.assert_array_equal(p[:, k], np.sort(x)[:, k])
        assert (p[:, : k % 9] <= p[:, k : k + 1 or None]).all()
        np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(jnp.argpartition(x, k)), 1), p)


def test_sort_complex():
    check("sort_complex", draw(6, dtype=np.complex64))
    assert jnp.sort_complex(np.array([3, 1])).dtype == np.complex64


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(method, side):
    a = np.sort(draw(9))
    a[3] = a[4]
    v = np.concatenate([draw(5), a[2:5], np.float32([np.nan, np.inf, -np.inf])])
    for values in (v, v.reshape(1, -1), v[0]):
        check(
            "searchsorted", a, values, side, method=method, numpy=lambda a, v, side, method: np.searchsorted(a, v, side)
        )
    a[7:] = np.nan
    check("searchsorted", a, v, side, method=method, numpy=lambda a, v, side, method: np.searchsorted(a, v, side))


@given(st.lists(st.integers(-5, 5), max_size=12), st.lists(st.integers(-6, 6), max_size=5))
def test_searchsorted_of_integers(a, v):
    a, v = np.sort(np.array(a, np.int32)), np.array(v, np.int32)
    for side in ("left", "right"):
        for method in ("scan", "sort"):
            np.testing.assert_array_equal(jnp.searchsorted(a, v, side, method=method), np.searchsorted(a, v, side))


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "compare_all"])
@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float8_e4m3b11fnuz", "float8_e5m2", "complex64", "uint8", "bool"]
)
def test_searchsorted_orders_zeros_and_nan_of_every_dtype(dtype, method):
    dtype = jnp.dtype(dtype)
    wide = dtype if np.issubdtype(dtype, np.complexfloating) else np.dtype(np.float32)
    special = [] if dtype.kind in "ub" else [np.nan, 0.0, -0.0, -3.0]
    for n in (1, 2, 7, 8, 64):  # sizes around powers of two
        a, v = (np.array([*integers(6, size, seed=n), *special]).astype(dtype) for size in (n, 20))
        a = a[np.argsort(a.astype(wide), kind="stable")]
        for side in ("left", "right"):
            found = jnp.searchsorted(a, v, side, method=method)
            np.testing.assert_array_equal(found, np.searchsorted(a.astype(wide), v.astype(wide), side))


def test_the_loop_of_searchsorted_compares_integers():
    """Floats become integers once, in front of the loop; a step of it has one look-up and compares two integers."""
    program = make_jaxpr(jnp.searchsorted)(np.ones(100, np.float32), np.ones(1000, np.float32))
    (loop,) = (eqn for eqn in all_equations(program.jaxpr) if eqn.primitive.name in ("scan", "while"))
    body = [eqn for inner in programs_in(loop) for eqn in all_equations(inner)]
    assert sum(eqn.primitive.name == "gather" for eqn in body) == 1
    assert not any(np.issubdtype(x.aval.dtype, np.floating) for eqn in body for x in (*eqn.invars, *eqn.outvars))


def test_searchsorted_with_sorter():
    check("searchsorted", np.array([3, 1, 2]), np.array([2, 5]), sorter=np.array([1, 2, 0]))
