"""Collectives over the axis of `vmap`, against NumPy operations along that axis."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.batching import vmap
from bedrax.core.jitting import jit
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


@pytest.mark.parametrize("groups", [GROUPS, [[3, 0, 2], [1]], [[1], [], [2, 0], [3]]])
@pytest.mark.parametrize("collective, reduce", [(lax.psum, np.sum), (lax.pmean, np.mean), (lax.pmax, np.max)])
def test_groups(collective, reduce, groups):
    want = np.empty_like(X)
    for group in filter(None, groups):
        want[group] = reduce(X[group], axis=0)
    np.testing.assert_allclose(over(lambda v: collective(v, "i", axis_index_groups=groups), X), want, rtol=1e-6)


def test_members_of_groups_are_counted():
    groups = [[3, 0, 2], [1]]
    for one in (1, True, np.float32(1), np.int8(1)):
        np.testing.assert_array_equal(
            over(lambda v, one=one: lax.psum(one, "i", axis_index_groups=groups), X), [3, 1, 3, 3]
        )


@pytest.mark.parametrize(
    "collective", [lax.all_gather, lax.psum_scatter, lambda *args, **groups: lax.all_to_all(*args, 0, 0, **groups)]
)
def test_groups_of_several_lengths_are_refused_by_name(collective):
    with pytest.raises(ValueError, match=r"must have one length, got \[\[3, 0, 2\], \[1\]\]; psum, pmean"):
        over(lambda v: collective(v, "i", axis_index_groups=[[3, 0, 2], [1]]), X)
    with pytest.raises(TypeError, match=r"must be a list of lists of indices, got \[0, 1, 2, 3\]"):
        over(lambda v: collective(v, "i", axis_index_groups=[0, 1, 2, 3]), X)


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
    """The collective does not name the axis of the inner map."""
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
    with pytest.raises(ValueError, match="source=4 is not an index of the axis 'i' of size 4"):
        over(lambda v: lax.pbroadcast(v, "i", 4), X)


@pytest.mark.parametrize("name", ["psend", "precv"])
def test_collectives_that_need_a_program_per_device_are_refused(name):
    with pytest.raises(NotImplementedError, match=f"lax.{name} is not supported: "):
        getattr(lax, name)(X, "i")


# ---- several axes, and groups along them, against loops over indices

MANY = np.random.default_rng(1).standard_normal((2, 3, 6, 6)).astype(np.float32)
BOTH_GROUPS = [[0, 4, 2], [5, 1, 3]]


def over_both(f, *args):
    return np.asarray(vmap(vmap(f, axis_name="j"), axis_name="i")(*args))


def of_each(want):
    """The results of the six indices, in the layout of `over_both`."""
    return np.stack(want).reshape(2, 3, *np.shape(want[0]))


def _ragged_rows(blocks, tables, out):
    first, count, into = tables
    want = [out.copy() for _ in blocks]
    for s, rows in enumerate(blocks):
        for r in range(len(blocks)):
            for k in range(count[s][r]):
                want[r][into[s][r] + k] = rows[first[s][r] + k]
    return want


SEVERAL = {
    "gather": (lambda v: lax.all_gather(v, ("i", "j"), axis=1), lambda b: [np.stack(b, 1)] * 6),
    "gather tiled": (lambda v: lax.all_gather(v, ("i", "j"), tiled=True), lambda b: [np.concatenate(b)] * 6),
    "gather in groups": (
        lambda v: lax.all_gather(v, ("i", "j"), axis_index_groups=BOTH_GROUPS),
        lambda b: [np.stack([b[i] for g in BOTH_GROUPS if r in g for i in g]) for r in range(6)],
    ),
    "sum in groups": (
        lambda v: lax.psum(v, ("i", "j"), axis_index_groups=BOTH_GROUPS),
        lambda b: [sum(b[i] for g in BOTH_GROUPS if r in g for i in g) for r in range(6)],
    ),
    "permutation": (
        lambda v: lax.ppermute(v, ("i", "j"), [(0, 5), (5, 1), (2, 2)]),
        lambda b: [0 * b[0], b[5], b[2], 0 * b[0], 0 * b[0], b[0]],
    ),
    "scatter": (
        lambda v: lax.psum_scatter(v, ("i", "j"), scatter_dimension=1),
        lambda b: [sum(b)[:, r] for r in range(6)],
    ),
    "scatter in groups": (
        lambda v: lax.psum_scatter(v, ("i", "j"), axis_index_groups=BOTH_GROUPS, tiled=True),
        lambda b: [
            sum(b[i] for i in g)[2 * g.index(r) : 2 * g.index(r) + 2] for r in range(6) for g in BOTH_GROUPS if r in g
        ],
    ),
    "exchange": (
        lambda v: lax.all_to_all(v, ("i", "j"), 0, 1),
        lambda b: [np.stack([b[s][r] for s in range(6)], 1 - 0) for r in range(6)],
    ),
    "exchange tiled": (
        lambda v: lax.all_to_all(v, ("i", "j"), 1, 0, tiled=True),
        lambda b: [np.concatenate([b[s][:, r : r + 1] for s in range(6)]) for r in range(6)],
    ),
    "exchange in groups": (
        lambda v: lax.all_to_all(v, ("i", "j"), 1, 1, tiled=True, axis_index_groups=BOTH_GROUPS),
        lambda b: [
            np.concatenate([b[s][:, 2 * g.index(r) : 2 * g.index(r) + 2] for s in g], 1)
            for r in range(6)
            for g in BOTH_GROUPS
            if r in g
        ],
    ),
    "index": (
        lambda v: lax.mul(v, lax.convert_element_type(lax.axis_index(("j", "i")), v.dtype)),
        lambda b: [b[r] * ((r % 3) * 2 + r // 3) for r in range(6)],
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_over_several_axes(name):
    f, meaning = SEVERAL[name]
    np.testing.assert_allclose(over_both(f, MANY), of_each(meaning(list(MANY.reshape(6, 6, 6)))), rtol=1e-5, atol=1e-6)


def test_ragged_exchange():
    rng = np.random.default_rng(2)
    count = rng.integers(0, 3, (4, 4)).astype(np.int32)
    first = rng.integers(0, 3, (4, 4)).astype(np.int32)
    into = np.cumsum(np.vstack([np.zeros(4, int), count[:-1]]), 0).astype(np.int32)
    rows = rng.standard_normal((4, 5, 2)).astype(np.float32)
    out = np.full((9, 2), -1, np.float32)
    got = over(
        lambda x, f, c, i, r: lax.ragged_all_to_all(x, out, f, c, i, r, axis_name="i"),
        rows,
        first,
        count,
        into,
        count.T,
    )
    np.testing.assert_array_equal(got, np.stack(_ragged_rows(rows, (first, count, into), out)))


def test_started_sums():
    """A future is a pytree that holds the result: it may cross a program, and it may be mapped."""
    square = np.arange(16, dtype=np.float32).reshape(4, 4)

    def program(v):
        started = lax.psum_scatter_start({"a": v, "b": 2 * v}, "i")
        assert started["a"].inner_aval.shape == ()
        return lax.sin(v), started["a"].done() + jit(lambda s: s.done())(started["b"])

    np.testing.assert_array_equal(vmap(program, axis_name="i")(square)[1], 3 * square.sum(0))
    futures = vmap(lambda v: lax.psum_scatter_start(v, "i", tiled=True), axis_name="i")(square)
    np.testing.assert_array_equal(futures.done(), square.sum(0)[:, None])
    assert repr(futures).startswith("Future(")
