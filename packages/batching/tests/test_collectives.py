"""Collectives over the axis of `vmap`, against NumPy operations along that axis."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.batching import vmap
from bedrax.core.staging import make_jaxpr

X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
GROUPS = [[0, 2], [3, 1]]


def over(f, *args, in_axes=0, out_axes=0):
    return np.asarray(vmap(f, in_axes=in_axes, out_axes=out_axes, axis_name="i")(*args))


@pytest.mark.parametrize(
    "collective, reduce", [(lax.psum, np.sum), (lax.pmean, np.mean), (lax.pmax, np.max), (lax.pmin, np.min)]
)
@pytest.mark.parametrize("in_axes", [0, 1])
def test_reductions(collective, reduce, in_axes):
    x = X if in_axes == 0 else X.T
    want = np.broadcast_to(reduce(X, axis=0), X.shape)
    np.testing.assert_allclose(over(lambda v: collective(v, "i"), x, in_axes=in_axes), want, rtol=1e-6)


def test_sum_of_something_unmapped():
    np.testing.assert_array_equal(over(lambda v: lax.psum(np.float32(2), "i"), X, out_axes=None), 8)
    assert vmap(lambda v: lax.full_like(v, lax.axis_size("i")), axis_name="i")(X).shape == X.shape


@pytest.mark.parametrize("collective, reduce", [(lax.psum, np.sum), (lax.pmax, np.max)])
def test_groups(collective, reduce):
    want = np.empty_like(X)
    for group in GROUPS:
        want[group] = reduce(X[group], axis=0)
    np.testing.assert_allclose(over(lambda v: collective(v, "i", axis_index_groups=GROUPS), X), want, rtol=1e-6)


def test_groups_must_cover_the_axis():
    with pytest.raises(ValueError, match="cover all indices"):
        over(lambda v: lax.psum(v, "i", axis_index_groups=[[0, 1], [2, 2]]), X)


def test_permutation():
    got = over(lambda v: lax.ppermute(v, "i", [(0, 2), (3, 1)]), X)
    want = np.zeros_like(X)
    want[2], want[1] = X[0], X[3]
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(over(lambda v: lax.pshuffle(v, "i", [3, 0, 1, 2]), X), X[[3, 0, 1, 2]])


@pytest.mark.parametrize("axis", [0, 1])
def test_gather(axis):
    got = over(lambda v: lax.all_gather(v, "i", axis=axis), X)
    np.testing.assert_array_equal(got, np.broadcast_to(X if axis == 0 else X.T, (4, *(X if axis == 0 else X.T).shape)))
    tiled = over(lambda v: lax.all_gather(v, "i", tiled=True), X)
    np.testing.assert_array_equal(tiled, np.broadcast_to(X.reshape(-1), (4, 12)))


def test_scatter():
    square = np.arange(16, dtype=np.float32).reshape(4, 4)
    np.testing.assert_array_equal(over(lambda v: lax.psum_scatter(v, "i"), square), square.sum(0))
    wide = np.arange(32, dtype=np.float32).reshape(4, 8)
    got = over(lambda v: lax.psum_scatter(v, "i", tiled=True), wide)
    np.testing.assert_array_equal(got, wide.sum(0).reshape(4, 2))


def test_exchange():
    x = np.arange(4 * 4 * 3, dtype=np.float32).reshape(4, 4, 3)
    np.testing.assert_array_equal(over(lambda v: lax.all_to_all(v, "i", 0, 0), x), x.transpose(1, 0, 2))
    np.testing.assert_array_equal(over(lambda v: lax.all_to_all(v, "i", 0, 1), x), x.transpose(1, 2, 0))
    np.testing.assert_array_equal(over(lambda v: lax.pswapaxes(v, "i", 0), x), x.transpose(1, 0, 2))
    y = np.arange(4 * 8, dtype=np.float32).reshape(4, 8)
    got = over(lambda v: lax.all_to_all(v, "i", 0, 0, tiled=True), y)
    np.testing.assert_array_equal(got, y.reshape(4, 4, 2).transpose(1, 0, 2).reshape(4, 8))


def test_index():
    np.testing.assert_array_equal(over(lambda v: lax.axis_index("i"), X), np.arange(4))
    nested = vmap(vmap(lambda v: lax.axis_index(("i", "j")), axis_name="j"), axis_name="i")(X)
    np.testing.assert_array_equal(nested, np.arange(12).reshape(4, 3))


def test_over_both_axes_of_nested_maps():
    f = vmap(vmap(lambda v: lax.psum(v, ("i", "j")), axis_name="j"), axis_name="i")
    np.testing.assert_allclose(f(X), np.full_like(X, X.sum()), rtol=1e-5)
    inner = vmap(vmap(lambda v: lax.psum(v, "i"), axis_name="j"), axis_name="i")
    np.testing.assert_allclose(inner(X), np.broadcast_to(X.sum(0), X.shape), rtol=1e-5)


@pytest.mark.parametrize(
    "f",
    [
        lambda v: lax.all_gather(v, "i"),
        lambda v: lax.all_gather(v, "i", axis=1, tiled=True),
        lambda v: lax.psum_scatter(v, "i", scatter_dimension=1),
        lambda v: lax.psum_scatter(v, "i", tiled=True),
        lambda v: lax.all_to_all(v, "i", 0, 1),
        lambda v: lax.ppermute(v, "i", [(0, 1), (1, 2)]),
        lambda v: lax.pmax(v, "i"),
    ],
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_collective_inside_another_map(f, at):
    """The inner map is over no axis that the collective names."""
    x = np.random.default_rng(1).standard_normal((4, 4, 4, 5)).astype(np.float32)  # i, two array axes, the other map
    expected = np.stack([np.asarray(vmap(f, axis_name="i")(x[..., k])) for k in range(5)])
    moved = np.moveaxis(x, 3, at + 1)
    got = vmap(vmap(f, in_axes=at), axis_name="i")(moved)
    np.testing.assert_allclose(np.moveaxis(np.asarray(got), 1, 0), expected, rtol=1e-5)


def test_unbound_name():
    with pytest.raises(NameError, match="no axis named '.*' is bound here"):
        make_jaxpr(lambda v: lax.psum(v, "nowhere"))(X)


def test_broadcast():
    np.testing.assert_array_equal(over(lambda v: lax.pbroadcast(v, "i", 2), X), np.broadcast_to(X[2], X.shape))
    with pytest.raises(ValueError, match="source=4 is no index of the axis 'i' of size 4"):
        over(lambda v: lax.pbroadcast(v, "i", 4), X)


@pytest.mark.parametrize("name", ["psend", "precv"])
def test_what_needs_programs_per_device(name):
    with pytest.raises(NotImplementedError, match=f"jax.lax.{name} is not supported: "):
        getattr(lax, name)(X, "i")
