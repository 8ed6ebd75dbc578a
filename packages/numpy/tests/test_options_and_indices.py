"""Programs about indices, masks, dtypes and options: the result of NumPy, or the type of the error."""

import functools

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax.core import config
from bedrax.core.jitting import jit
from bedrax.lax import flags
from bedrax.numpy.logsumexp import logsumexp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

INDICES = [
    ([0, 1], [1, 2]),
    ((0, 1), (1, 2)),
    ([0, 1], slice(None)),
    ([0, 1], slice(None), 1),
    ([[0, 1], [1, 0]], 2),
    ([True, False], 0),
    ([], 0),
    (None, [0, 1]),
    (..., [0, 1]),
    ([-1, 0], ..., [3, -4]),
]


@pytest.mark.parametrize("idx", INDICES, ids=str)
def test_a_list_in_a_tuple_of_indices_is_an_array(idx):
    expected = X[idx]
    for of in (lambda x: x[idx], jit(lambda x: x[idx])):
        np.testing.assert_array_equal(of(jnp.asarray(X)), expected)
    written = X.copy()
    written[idx] = -1
    np.testing.assert_array_equal(jnp.asarray(X).at[idx].set(-1), written)


def test_a_list_of_traced_positions_is_an_array():
    f = jit(lambda x, i: x[[i, i + 1], 0])
    np.testing.assert_array_equal(f(X, 0), X[[0, 1], 0])


WRONG = [
    ([0, 1], TypeError),
    ([slice(None), 0], TypeError),
    ({}, IndexError),
    (({}, 0), IndexError),
    (Ellipsis.__class__, IndexError),
    (1.0, TypeError),
    ((0, [0.5, 1.0]), TypeError),
    (slice(0, 1.5), TypeError),
    (slice(0, 1, 0), (IndexError, ValueError)),
    ((0, 0, 0, 0), IndexError),
    ("a", TypeError),
]


@pytest.mark.parametrize(("idx", "error"), WRONG, ids=str)
def test_other_indices_are_errors(idx, error):
    with pytest.raises(error):
        jnp.asarray(X)[idx]


REDUCTIONS = "sum prod max min mean var std nansum nanprod nanmax nanmin nanmean nanvar nanstd any all".split()


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("mask", [np.array([True, False, True, True]), np.ones((3, 1), bool), np.True_], ids=np.shape)
def test_a_mask_of_lower_rank_is_not_a_rank_promotion(name, mask):
    more = {"initial": np.float32(0)} if name in ("max", "min", "nanmax", "nanmin") else {}
    with flags.numpy_rank_promotion("raise"):
        got = getattr(jnp, name)(X, axis=(0, 2), where=mask, **more)
    np.testing.assert_allclose(got, getattr(np, name)(X, axis=(0, 2), where=mask, **more), rtol=1e-5)


def test_histograms_do_not_promote_ranks():
    x, y, w = np.arange(5.0), 2 * np.arange(5.0), np.arange(5.0)
    with flags.numpy_rank_promotion("raise"):
        got = jnp.histogram2d(x, y, bins=[2, 3], weights=w, density=True)
    for a, b in zip(got, np.histogram2d(x, y, bins=[2, 3], weights=w, density=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize(
    ("signature", "shapes", "promotes"),
    [
        (None, [(2, 3), (3,)], True),
        (None, [(2, 3), (1, 3)], False),
        (None, [(3,), ()], False),
        ("(n),(n)->()", [(2, 3), (3,)], True),
        ("(n),(n)->()", [(3,), (2, 3)], True),
        ("(n),(n)->()", [(3,), (3,)], False),
    ],
)
def test_vectorize_applies_the_option_of_rank_promotion(signature, shapes, promotes):
    f = jnp.vectorize(lambda a, b: jnp.sum(a * b), signature=signature)
    args = [np.ones(s, np.float32) for s in shapes]
    with flags.numpy_rank_promotion("warn"):
        if promotes:
            with pytest.warns(UserWarning, match="rank promotion"):
                expected = f(*args)
        else:
            expected = f(*args)
    with flags.numpy_rank_promotion("raise"):
        if promotes:
            with pytest.raises(ValueError, match="different ranks"):
                f(*args)
        else:
            np.testing.assert_array_equal(f(*args), expected)


@pytest.mark.parametrize("dtype", ["int4", "int8", "uint8", "bfloat16", "float16", "float8_e4m3fn", "int32", "float32"])
@pytest.mark.parametrize("make", ["linspace", "logspace", "geomspace"])
def test_a_dtype_is_a_conversion_under_strict_promotion(make, dtype):
    expected = getattr(jnp, make)(1, 3, 3).astype(dtype)
    with config.numpy_dtype_promotion("strict"):
        got = getattr(jnp, make)(1, 3, 3, dtype=dtype)
    assert got.dtype == jnp.dtype(dtype)
    np.testing.assert_allclose(np.float32(got), np.float32(expected), rtol=0.15)


def test_var_returns_the_dtype_that_is_given():
    z, x = np.array([1 + 2j, -3j], np.complex64), np.float32([1, 3])
    for f in (jnp.var, jnp.nanvar):
        assert f(z).dtype == np.float32 and f(z, dtype=np.complex64).dtype == np.complex64
        assert complex(f(z, dtype=np.complex64)) == 6.5 and complex(f(x, dtype=np.complex64)) == 1


def test_the_length_of_a_bincount():
    x = np.array([0, 1, 5])
    assert jnp.bincount(x, length=3, minlength=5).tolist() == [1, 1, 0]
    assert jnp.bincount(x, minlength=8).tolist() == np.bincount(x, minlength=8).tolist()


@pytest.mark.parametrize("axis", [(0, 0), (2, -1)])
def test_size_names_each_axis_once(axis):
    with pytest.raises(ValueError, match="repeated axis"):
        jnp.size(X, axis)


@pytest.mark.parametrize("name", ["nin", "nout", "nargs", "identity"])
def test_attributes_of_a_ufunc_are_read_only(name):
    ours, theirs = jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0), np.add
    assert getattr(ours, name) == getattr(theirs, name)
    with pytest.raises(AttributeError):
        setattr(ours, name, 5)


MASK = np.array([1, 0, 1])


@pytest.mark.parametrize(
    "reduce",
    [
        *(getattr(jnp, n) for n in ("sum", "prod", "any", "all", "mean", "var", "std", "nansum", "nanmean", "nanvar")),
        *(functools.partial(getattr(jnp, n), initial=0) for n in ("max", "min", "nanmax", "nanmin")),
        logsumexp,
    ],
)
@pytest.mark.parametrize("where", [MASK, np.float32(MASK), 1])
def test_a_mask_of_a_reduction_is_boolean(reduce, where):
    """A mask of numbers is ambiguous: it could mean weights, or the elements that are not 0."""
    x = np.float32([1, 2, 3])
    with pytest.raises(ValueError, match="where is None or an array of booleans"):
        reduce(x, where=where)
    assert reduce(x, where=MASK != 0).shape == reduce(x, where=True).shape == ()


@pytest.mark.parametrize("given", [(3j,), (0, 3j), (0, 3, np.complex64(1j))])
def test_ends_of_ranges_are_real(given):
    with pytest.raises(ValueError, match="complex numbers have no order"):
        jnp.arange(*given)
    assert jnp.arange(3, dtype=complex).dtype == np.complex64


@pytest.mark.parametrize("index", [0, slice(2), np.array([0]), Ellipsis, np.array([True, False, False])])
def test_each_kind_of_index_checks_its_mode(index):
    x = jnp.arange(3.0)
    with pytest.raises(ValueError, match="no mode of scatter is named 'zz'"):
        x.at[index].get(mode="zz")
    with pytest.raises(ValueError, match="no mode of scatter is named 'zz'"):
        x.at[index].set(1, mode="zz")
    np.testing.assert_array_equal(x.at[index].get(mode="clip"), x[index])


def test_a_grid_is_a_tuple():
    assert type(jnp.meshgrid(X[0, 0])) is type(jnp.meshgrid(X[0, 0], X[0, 0], sparse=True)) is tuple
