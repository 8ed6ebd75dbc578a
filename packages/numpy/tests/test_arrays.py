"""Creation, reductions, shapes, joining, padding and methods against NumPy, from one table of calls."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bedrax.numpy as jnp
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.core import config, errors, staging
from bedrax.core.jitting import jit
from bedrax.testing import oracles

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 4 - 2
I = np.arange(12, dtype=np.int32).reshape(3, 4) - 4
V = np.array([3, 1, 2, 0], np.int32)

# Calls of `xp` that mean the same in NumPy; arrays go in as NumPy's.
CALLS = """
xp.sum(X, axis=(0, 2)) | xp.sum(X, axis=1, keepdims=True) | xp.sum(X, where=X > 0, initial=2.0) | xp.prod(X + 3, axis=-1)
xp.max(X, axis=0) | xp.min(X, axis=(1, 2)) | xp.max(X, axis=0, initial=0, where=X < 1) | xp.ptp(X, axis=1)
xp.mean(X, axis=1) | xp.mean(I, axis=0) | xp.mean(X, where=X > 0) | xp.var(X, axis=2, ddof=1) | xp.std(X, keepdims=True)
xp.var(X, axis=0, where=X > -1) | xp.all(X > 0, axis=1) | xp.any(X > 2, axis=(0, 1)) | xp.count_nonzero(I, axis=0)
xp.argmax(X, axis=1) | xp.argmin(X) | xp.argmax(X, axis=0, keepdims=True) | xp.cumsum(X, axis=1) | xp.cumsum(X)
xp.cumprod(X, axis=2) | xp.cumulative_sum(V, include_initial=True) | xp.cumulative_prod(V + 1)
xp.nansum(xp.where(X > 0, X, np.nan)) | xp.nanmean(xp.where(X > -1.8, X, np.nan), axis=1) | xp.nanmax(xp.where(X > -2, X, np.nan), axis=2)
xp.nanvar(xp.where(X > -1.5, X, np.nan), axis=0, ddof=0) | xp.nanargmin(xp.where(X > -2, X, np.nan)) | xp.nancumsum(xp.where(X > 0, X, np.nan))
xp.arange(7) | xp.arange(2, 9, 3) | xp.arange(9, 2, -2) | xp.linspace(0, 1, 5) | xp.linspace(X[0], X[1], 4, axis=1)
xp.linspace(0, 10, 4, dtype=np.int32) | xp.linspace(1, 2, 4, endpoint=False) | xp.logspace(0, 3, 4) | xp.geomspace(1, 16, 5)
xp.eye(3, 4, 1) | xp.eye(3, k=-1) | xp.tri(3, 4) | xp.tril(X) | xp.triu(I, 1) | xp.diag(V) | xp.diag(V, -2) | xp.diag(I, 1)
xp.diagonal(X, 1, 1, 2) | xp.diagflat(I) | xp.vander(V) | xp.identity(3) | xp.indices((2, 3)) | xp.full((2, 2), V[:2])
xp.mgrid[0:3, 1:3] | xp.mgrid[0:1:5j] | xp.r_[V, 7, 0:3] | xp.c_[V, V] | xp.r_['0,2', V, V] | xp.r_['1,2,0', V, V]
xp.reshape(X, (4, -1)) | xp.reshape(X, (4, 6), order='F') | xp.ravel(X, order='F') | xp.transpose(X) | xp.transpose(X, (1, 0, 2))
xp.swapaxes(X, 0, -1) | xp.moveaxis(X, (0, 1), (-1, 0)) | xp.rollaxis(X, 2) | xp.rollaxis(X, 0, 3) | xp.flip(X) | xp.flip(X, (0, 2))
xp.fliplr(X) | xp.flipud(X) | xp.rot90(I) | xp.rot90(X, 3, (1, 2)) | xp.rot90(I, 2) | xp.squeeze(X[:1]) | xp.expand_dims(X, (0, -1))
xp.broadcast_to(V, (3, 4)) | xp.atleast_1d(3) | xp.atleast_2d(V) | xp.atleast_3d(I) | xp.tile(I, (2, 1)) | xp.tile(V, (2, 2))
xp.repeat(V, 2) | xp.repeat(I, 3, axis=1) | xp.repeat(I, np.array([1, 0, 2]), axis=0) | xp.roll(I, 2) | xp.roll(X, (1, -2), (0, 2))
xp.resize(I, (2, 9)) | xp.concatenate([X, X], axis=1) | xp.concatenate([I, I], axis=None) | xp.stack([V, V], axis=1)
xp.vstack([V, V]) | xp.hstack([I, I]) | xp.dstack([V, V]) | xp.column_stack([V, V]) | xp.append(I, V) | xp.block([[I, I], [I, I]])
xp.split(I, 3)[1] | xp.split(I, [1, 3], axis=1)[2] | xp.array_split(V, 3)[0] | xp.hsplit(I, 2)[1] | xp.vsplit(I, 3)[2]
xp.insert(V, 2, 9) | xp.insert(I, 1, V, axis=0) | xp.insert(V, np.array([0, 3]), np.array([8, 9])) | xp.insert(I, 1, 5, axis=1)
xp.delete(V, 1) | xp.delete(I, np.array([0, -1]), axis=1) | xp.delete(I, slice(0, 2), axis=0) | xp.trim_zeros(np.array([0, 1, 0, 2, 0]))
xp.pad(I, 2) | xp.pad(I, ((1, 0), (0, 2)), constant_values=7) | xp.pad(I, 2, mode='edge') | xp.pad(I, 5, mode='reflect')
xp.pad(I, 4, mode='symmetric') | xp.pad(I, 4, mode='reflect', reflect_type='odd') | xp.pad(I, 6, mode='wrap')
xp.pad(X, ((0, 0), (2, 1), (0, 3)), mode='linear_ramp', end_values=5) | xp.pad(X, 2, mode='mean') | xp.pad(I, 1, mode='maximum', stat_length=2)
xp.pad(I, 2, mode='median') | xp.pad(I, (1, 2), mode='minimum')
xp.where(I > 0, I, -1) | xp.select([I > 3, I < 0], [I, -I], 7) | xp.choose(V % 2, [V, -V]) | xp.clip(X, -1, 1) | xp.clip(I, 0, None)
xp.piecewise(X, [X < 0, X > 2], [-1, lambda v: v * 2, 5]) | xp.argwhere(I > 0) | xp.flatnonzero(I > 3) | xp.extract(I > 0, I)
xp.compress(np.array([True, False, True]), I, axis=0) | xp.unravel_index(V, (2, 3))[1] | xp.ravel_multi_index((V, V), (4, 5))
xp.tril_indices(3, 1)[0] | xp.triu_indices(3, 0, 4)[1] | xp.ix_(V, V)[0] | xp.isclose(X, X + 1e-7) | xp.array_equal(I, I)
xp.apply_along_axis(xp.sum, 1, X) | xp.apply_over_axes(xp.sum, X, (0, 2)) | xp.vectorize(lambda a, b: a + b)(I, V)
xp.meshgrid(V, V[:2])[0] | xp.meshgrid(V, V[:2], indexing='ij', sparse=True)[1] | xp.broadcast_arrays(I, V)[1]
"""
CASES = [c.strip() for line in CALLS.strip().splitlines() for c in line.split("|")]


def value(call, xp):
    return eval(call, {"xp": xp, "np": np, "X": X, "I": I, "V": V})


@pytest.mark.parametrize("call", CASES)
def test_call_is_numpys(call):
    oracles.require(*(f"numpy.{name}" for name in re.findall(r"xp\.([\w.]+)", call)))
    with np.errstate(all="ignore"):
        expected = np.asarray(value(call, np))
    got = np.asarray(value(call, jnp))
    assert got.shape == expected.shape
    assert np.dtype(got.dtype).kind == expected.dtype.kind
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-5)


TRACED = [
    c
    for c in CASES
    if not any(
        w in c
        for w in (
            "argwhere",
            "flatnonzero",
            "extract",
            "compress",
            "trim_zeros",
            "r_[",
            "c_[",
            "ravel_multi",
            "choose",
            "insert(I, 1, V",
            "np.array([0, 3])",
            "where=",
        )
    )
]


@pytest.mark.parametrize("call", TRACED)
def test_call_can_be_traced(call):
    names = {"xp": jnp, "np": np}
    got = jit(lambda x, i, v: eval(call, {**names, "X": x, "I": i, "V": v}))(X, I, V)
    np.testing.assert_allclose(np.asarray(got), np.asarray(value(call, jnp)), rtol=1e-5, atol=1e-5)


DATA = [
    3, 2.5, True, 1j, [1, 2], [1, 2.5], [True, 2], [[1, 2], [3, 4]], (1, 2), [], np.float64(3), np.arange(3), range(3),
    [np.int8(1), np.int16(2)], [np.array([1, 2]), np.array([3, 4])], np.array(5, np.uint8),
]  # fmt: skip


@pytest.mark.parametrize("data", DATA, ids=repr)
@pytest.mark.parametrize("make", [jnp.array, jnp.asarray])
def test_data_becomes_arrays(data, make):
    got, expected = make(data), np.asarray(data)
    assert got.shape == expected.shape
    np.testing.assert_allclose(np.asarray(got), expected)
    assert got.dtype.itemsize <= expected.dtype.itemsize
    assert got.weak_type == (type(data) in (int, float, complex))


def test_arrays_in_lists_are_stacked():
    x = jnp.arange(3)
    assert jnp.array([x, x + 1]).shape == (2, 3)
    assert jit(lambda v: jnp.array([v, 2 * v, 0]))(1.5).shape == (3,)


BAD_DATA = [(None, ValueError), ("a", TypeError), ([1, None], ValueError), ([1, "a"], TypeError), ([[1, 2], [3]], ValueError),
            (2**40, OverflowError), ([2**40], OverflowError), (object(), TypeError)]  # fmt: skip


@pytest.mark.parametrize(("data", "error"), BAD_DATA, ids=[repr(b[0])[:12] for b in BAD_DATA])
def test_data_that_is_no_array_is_refused(data, error):
    with pytest.raises(error):
        jnp.array(data)


def test_arrays_do_not_share_memory_with_their_sources():
    source = np.zeros(3, np.float32)
    made = jnp.array(source)
    source[0] = 1
    assert float(made[0]) == 0


def test_requested_wide_types_warn():
    with pytest.warns(UserWarning, match="float32 is taken"):
        assert jnp.zeros(3, jnp.float64).dtype == np.float32
    with config.enable_x64(True):
        assert jnp.zeros(3).dtype == np.float64


SUMS = {
    "bool": "int32",
    "int8": "int32",
    "uint8": "uint32",
    "int32": "int32",
    "bfloat16": "bfloat16",
    "float16": "float16",
}


@pytest.mark.parametrize(("dtype", "expected"), SUMS.items())
def test_dtypes_of_sums(dtype, expected):
    x = jnp.ones(3, dtype)
    assert jnp.sum(x).dtype == expected == jnp.prod(x).dtype
    assert jnp.cumsum(x).dtype == ("int32" if dtype == "bool" else dtype)
    assert jnp.sum(x, dtype=jnp.float32).dtype == np.float32


def test_half_precision_sums_do_not_saturate():
    assert float(jnp.sum(jnp.ones(4096, jnp.bfloat16))) == 4096
    assert float(jnp.mean(jnp.full(4096, 2, jnp.float16))) == 2


def test_empty_reductions():
    assert float(jnp.sum(jnp.zeros(0))) == 0 and float(jnp.prod(jnp.zeros(0))) == 1
    for f in (jnp.max, jnp.min):
        with pytest.raises(ValueError, match="no identity"):
            f(jnp.zeros(0))
        assert float(f(jnp.zeros(0), initial=3)) == 3
    with pytest.raises(ValueError, match="argmax of an empty axis, of shape"):
        jnp.argmax(jnp.zeros(0))
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.sum(jnp.zeros(3), axis=1)
    with pytest.raises(NotImplementedError, match="out is not supported"):
        jnp.sum(jnp.zeros(3), out=np.zeros(()))


def test_the_error_of_reshape_names_the_shapes():
    with pytest.raises(TypeError, match=r"cannot reshape array of shape \(3,\) \(size 3\) into shape \(2,"):
        jnp.reshape(jnp.ones(3), (2, 2))
    with pytest.raises(ValueError, match="only specify one unknown"):
        jnp.reshape(jnp.ones(4), (-1, -1))


def test_lengths_must_be_static():
    with pytest.raises(errors.ConcretizationTypeError, match="arange"):
        jit(jnp.arange)(3)
    with pytest.raises(errors.ConcretizationTypeError, match="total_repeat_length"):
        jit(lambda n: jnp.repeat(np.arange(3), n))(np.array([1, 2, 3]))
    got = jit(lambda n: jnp.repeat(np.arange(3), n, total_repeat_length=7))(np.array([1, 0, 3]))
    np.testing.assert_array_equal(np.asarray(got), [0, 2, 2, 2, 2, 2, 2])


METHODS = {
    "x.sum(0)": "x.sum(0)",
    "x.mean()": "x.mean()",
    "x.T": "x.T",
    "x.mT": "x.mT",
    "x.reshape(4, 3)": "x.reshape(4, 3)",
    "x.reshape((2, 6))": "x.reshape((2, 6))",
    "x.transpose(1, 0)": "x.transpose(1, 0)",
    "x.flatten()": "x.flatten()",
    "x.astype('int32')": "x.astype('int32')",
    "x.clip(0, 2)": "x.clip(0, 2)",
    "x.max(1)": "x.max(1)",
    "x @ x.T": "x @ x.T",
    "x.view('int32')": "x.view('int32')",
    "x.round(1)": "x.round(1)",
    "x.take(2)": "x.take(2)",
    "x.ptp()": "np.ptp(x)",
    "x.view('uint8')": "x.view('uint8')",
    "x.view('complex64')": "x.view('complex64')",
    "x.byteswap()": "x.byteswap()",
    "x.std(axis=0)": "x.std(axis=0)",
    "x.cumsum()": "x.cumsum()",
    "x.diagonal()": "x.diagonal()",
    "x.real": "x.real",
    "x.imag": "x.imag",
    "x.argmax(1)": "x.argmax(1)",
    "x.repeat(2, axis=0)": "x.repeat(2, axis=0)",
    "-x": "-x",
    "abs(x)": "abs(x)",
    "2 - x": "2 - x",
    "x // 2": "x // 2",
    "x % 3": "x % 3",
    "x == 1": "x == 1",
    "x > 0": "x > 0",
    "divmod(x, 2)[1]": "divmod(x, 2)[1]",
    "np.stack(list(x))": "np.stack(list(x))",
    "len(x)": "len(x)",
    "5 in x": "5 in x",
    "x.tobytes()[:4]": "x.tobytes()[:4]",
    "x.compress(np.array([True, False, True]), axis=0)": "x[::2]",
}


@pytest.mark.parametrize("mine", METHODS)
def test_methods_are_numpys(mine):
    x = np.arange(12, dtype=np.float32).reshape(3, 4) - 3.5
    expected = eval(METHODS[mine], {"x": x, "np": np})
    got = eval(mine, {"x": jnp.asarray(x), "np": np})
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-6) if not isinstance(got, bytes) else None
    assert np.asarray(got).shape == np.asarray(expected).shape


def test_methods_of_tracers():
    f = jit(lambda x: (x.T @ x).sum(0).astype(jnp.int32).at[0].add(1)[::-1])
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    expected = (x.T @ x).sum(0).astype(np.int32)
    expected[0] += 1
    np.testing.assert_array_equal(np.asarray(f(x)), expected[::-1])


@given(
    st.integers(0, 12), st.integers(0, 12), st.sampled_from(["reflect", "symmetric", "wrap", "edge"]), st.integers(1, 4)
)
def test_padding_of_any_width(before, after, mode, size):
    x = np.arange(size, dtype=np.int32) + 1
    np.testing.assert_array_equal(
        np.asarray(jnp.pad(x, (before, after), mode=mode)), np.pad(x, (before, after), mode=mode)
    )


GRADS = {
    "mean": lambda x: jnp.mean(x), "var": lambda x: jnp.var(x), "max": lambda x: jnp.max(x * 1.0), "pad": lambda x: jnp.sum(
        jnp.pad(x, 2, mode="reflect") ** 2), "roll": lambda x: jnp.sum(jnp.roll(x, 1) * x), "cumsum": lambda x: jnp.sum(
        jnp.cumsum(x) ** 2), "where": lambda x: jnp.sum(jnp.where(x > 0, x**2, 0)), "concat": lambda x: jnp.sum(
        jnp.concatenate([x, x * 2]) ** 2), "diag": lambda x: jnp.sum(jnp.diag(x) ** 3), "repeat": lambda x: jnp.sum(
        jnp.repeat(x, 2) ** 2), "clip": lambda x: jnp.sum(jnp.clip(x, -1, 1) ** 2), "prod": lambda x: jnp.prod(x),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADS)
def test_gradients_are_difference_quotients(name):
    f = GRADS[name]
    x = np.array([0.3, -0.7, 1.9, 0.45])
    with config.enable_x64(True):
        got = np.asarray(grad(f)(x))
        for i in range(len(x)):
            step = np.eye(len(x))[i] * 1e-6
            expected = (float(f(x + step)) - float(f(x - step))) / 2e-6
            assert got[i] == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_vectorize_with_core_dimensions():
    f = jnp.vectorize(lambda a, b: jnp.dot(a, b), signature="(m,n),(n)->(m)")
    a, b = np.ones((5, 1, 2, 3), np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_allclose(np.asarray(f(a, b)), np.einsum("xymn,yn->xym", np.broadcast_to(a, (5, 4, 2, 3)), b))
    with pytest.raises(ValueError, match="not a valid gufunc signature"):
        jnp.vectorize(lambda a: a, signature="(n")
    with pytest.raises(ValueError, match="inconsistent size"):
        f(a, b[:, :2])


def test_mapped_reductions():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for f in (jnp.sum, jnp.max, jnp.argmin, jnp.cumsum, jnp.std, jnp.flip, jnp.diag):
        expected = np.stack([np.asarray(f(row)) for row in x])
        np.testing.assert_allclose(np.asarray(vmap(f)(x)), expected, rtol=1e-6)


def test_every_public_name_exists():
    for name in jnp.__all__:
        assert getattr(jnp, name, jnp) is not jnp


def test_functions_that_accept_lists():
    for f, x, expected in ((jnp.shape, [1, 2], (2,)), (jnp.ndim, [[1]], 2), (jnp.size, [1, 2], 2)):
        with pytest.warns(DeprecationWarning, match=f"jnp.{f.__name__} is for arrays and scalars, got list") as seen:
            assert f(x) == expected
        assert len(seen) == 1
    assert bool(jnp.array_equal([1, 2], np.array([1, 2])))
    assert jnp.zeros(3).at[:2].set([1, 2]).tolist() == [1, 2, 0]


def test_scalars():
    assert jnp.isscalar(3) and jnp.isscalar(jnp.array(3)) and jnp.isscalar(np.array(3))
    assert not jnp.isscalar(jnp.array([3])) and not jnp.isscalar([3])


def test_roll_by_a_traced_shift():
    x = np.arange(12).reshape(3, 4)
    got = jit(lambda v, s: jnp.roll(v, s, axis=1))(x, -3)
    np.testing.assert_array_equal(np.asarray(got), np.roll(x, -3, axis=1))


@pytest.mark.parametrize(
    "call, position",
    [
        (lambda bad: jnp.percentile(jnp.ones(3), bad), 1),
        (lambda bad: jnp.insert(jnp.ones(3), 1, bad), 2),
        (lambda bad: jnp.polyint(jnp.ones(3), 1, bad), 2),
        (lambda bad: jnp.ediff1d(jnp.ones(3), bad), 1),
        (lambda bad: jnp.ediff1d(jnp.ones(3), None, bad), 2),
        (lambda bad: jnp.take(jnp.ones(3), bad), 1),
        (lambda bad: jnp.bincount(jnp.ones(3, int), bad), 1),
    ],
)
def test_errors_name_the_position_of_the_argument(call, position):
    with pytest.raises(TypeError, match=f"at position {position}"):
        call([10, "no number"])


@pytest.mark.parametrize("zeros", [[], [1.0], [1.0, 2.0, 3.0], [1.0, np.nan, 3.0]], ids=str)
def test_polynomials_of_zeros(zeros):
    expected = np.poly(np.asarray(zeros, np.float32))
    found = np.asarray(jnp.poly(np.asarray(zeros, np.float32)))
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_scalar_is_repeated_as_a_vector_of_one():
    for axis in (None, 0, -1):
        np.testing.assert_array_equal(np.asarray(jnp.repeat(0.5, 3, axis=axis)), np.repeat(0.5, 3, axis=axis))
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.repeat(0.5, 3, axis=1)


def test_indexing_an_empty_axis_is_an_error():
    for read in (lambda x: jnp.take(x, np.array([0]), axis=0), lambda x: x[np.array([0])]):
        with pytest.raises(IndexError, match="axis 0 .*empty"):
            read(jnp.zeros((0, 3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint32, bool, np.complex64])
@pytest.mark.parametrize("axis, keepdims", [(None, False), (0, True), ((0, 2), False), (-1, False), ((), False)])
def test_minmax(dtype, axis, keepdims):
    rng = np.random.default_rng(3)
    x = (rng.normal(size=(2, 3, 4)) * 5 + (1j * rng.normal(size=(2, 3, 4)) if dtype is np.complex64 else 0)).astype(
        dtype
    )
    found = jnp.minmax(x, axis, keepdims=keepdims)
    assert type(found) is tuple
    for value, of in zip(found, (np.min, np.max), strict=True):
        np.testing.assert_array_equal(value, of(x, axis=axis, keepdims=keepdims))
        assert value.dtype == x.dtype
    if dtype is not np.complex64:
        where = rng.random((3, 4)) < 0.5
        bounds = (1, 0) if dtype is bool else (2, 1)
        for initial in (bounds, 1):
            low, high = initial if type(initial) is tuple else (initial, initial)
            least, most = jnp.minmax(x, axis, keepdims=keepdims, initial=initial, where=where)
            np.testing.assert_array_equal(least, np.min(x, axis, keepdims=keepdims, initial=low, where=where))
            np.testing.assert_array_equal(most, np.max(x, axis, keepdims=keepdims, initial=high, where=where))


def test_minmax_edges():
    assert np.isnan(jnp.minmax(np.float32([1, np.nan]))).all()
    assert [float(v) for v in jnp.minmax(np.zeros(0, "f"), initial=(3.0, 4.0))] == [3, 4]
    assert [int(v) for v in jnp.minmax(7)] == [7, 7]
    for error, match, args, kwargs in (
        (ValueError, "minmax.*no elements", (np.zeros(0, "f"),), {}),
        (ValueError, "minmax.*mask", (np.ones(2, "f"),), {"where": True}),
        (ValueError, "pair of scalars, got 3", (np.ones(2, "f"),), {"initial": (1, 2, 3)}),
        (ValueError, "scalar", (np.ones(2, "f"),), {"initial": np.ones(2)}),
        (NotImplementedError, "out", (np.ones(2, "f"),), {"out": np.ones(2)}),
        (TypeError, "minmax", ([1, 2],), {}),
    ):
        with pytest.raises(error, match=match):
            jnp.minmax(*args, **kwargs)
    slopes = grad(lambda v: jnp.minmax(v)[0] + 2 * jnp.minmax(v)[1])(np.float32([1, 2, 2, 0]))
    np.testing.assert_array_equal(slopes, [0, 1, 1, 1])


@pytest.mark.parametrize("unroll", [None, 0, 1, 3, 128])
@pytest.mark.parametrize("count", [0, 1, 4, 20, 100])
def test_values_of_polynomials(count, unroll):
    p = np.random.default_rng(count).uniform(-1, 1, count).astype(np.float32)
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(jnp.polyval(p, x, unroll=unroll), np.polyval(p, x), rtol=1e-4, atol=1e-5)
    several = np.stack([p, 2 * p, -p], 1)
    np.testing.assert_allclose(
        jnp.polyval(several, x, unroll=unroll), np.polyval(p, x) * [1, 2, -1], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        grad(lambda v: jnp.polyval(p, v, unroll=unroll).sum())(x),
        np.polyval(np.polyder(p.astype("d")), x) if count else 0 * x,
        rtol=1e-3,
        atol=1e-3,
    )


class Wrapped:
    """A value that its own method converts to an array."""

    def __init__(self, x):
        self.x = x

    def __jax_array__(self):
        return self.x


KEPT = [jnp.ones(3), np.ones(3, np.float32), np.zeros((2, 0), np.int32), memoryview(b"abc"), Wrapped(jnp.ones(2))]
COPIED = {
    "float64 to float32": (np.ones(3), None), "float32 to int32": (np.ones(3, np.float32), "int32"),
    "int32 to float32": (jnp.arange(3), "float32"), "not in C order": (np.ones((3, 2), np.float32).T, None),
    "list is not an array": ([1, 2], None), "tuple is not an array": ((1, 2), "int32"), "int is not an array": (1, None),
    "float is not an array": (1.0, "float32"), "bool is not an array": (True, None), "range is not an array": (range(3), None),
    "float32 is not an array": (np.float32(1), None), "int8 to int32": (memoryview(b"abc"), "int32"),
}  # fmt: skip


@pytest.mark.parametrize("x", KEPT, ids=lambda x: type(x).__name__)
def test_asarray_without_a_copy_accepts_data_that_needs_none(x):
    made = jnp.asarray(x, copy=False)
    np.testing.assert_array_equal(made, jnp.asarray(x))
    assert jnp.asarray(made, made.dtype, copy=False) is made


@pytest.mark.parametrize("make", [jnp.array, jnp.asarray])
def test_an_array_of_memory_that_is_written_to_later_keeps_its_elements(make):
    memory = np.zeros(100, np.float32)
    for start in range(16):  # some of these addresses are aligned, so that a backend could share the memory
        data = memory[start : start + 40]
        made, traced = make(data), staging.make_jaxpr(lambda data=data: make(data))()
        memory[:] = start + 1
        for kept in (made, *traced.consts):
            np.testing.assert_array_equal(kept, np.full(40, start, np.float32))


@pytest.mark.parametrize("why", COPIED)
def test_asarray_refuses_to_copy(why):
    x, dtype = COPIED[why]
    with pytest.raises(ValueError, match=f"a copy is needed: .*{why}"):
        jnp.asarray(x, dtype, copy=False)
    assert jnp.asarray(x, dtype, copy=None).shape == jnp.asarray(x, dtype, copy=True).shape == np.shape(x)


def test_stored_elements_of_python_types_have_the_width_of_numpy():
    for dtype in (float, int):
        stored = np.arange(3).astype(dtype).tobytes()
        np.testing.assert_array_equal(jnp.frombuffer(stored, dtype=dtype), [0, 1, 2])
    np.testing.assert_array_equal(jnp.frombuffer(np.arange(3.0).tobytes()), [0, 1, 2])
    assert jnp.fromstring("16777217", sep=" ", dtype=int) == 16777217


def test_full_of_none_is_a_type_error():
    with pytest.raises(TypeError, match="fill_value is an array or a number, got None"):
        jnp.full((2,), None)


def test_the_condition_of_the_method_compress_is_required():
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(x.compress(condition=np.array([True, False, True])), [0, 2])
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'condition'"):
        x.compress(axis=0)
