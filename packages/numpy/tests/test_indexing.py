"""Indexing against NumPy: every kind of index, read and written, eager and under transformations."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.core import errors
from bedrax.core.codes import code_of
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.lax import flags
from bedrax.numpy.index_plans import NonConcreteBooleanIndexError, Slice

SHAPE = (3, 4, 2)


@st.composite
def slices(draw, size):
    bound = st.none() | st.integers(-size - 2, size + 2)
    step = draw(st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3]))
    return slice(draw(bound), draw(bound), step)


@st.composite
def indices(draw):
    """A NumPy index of an array of SHAPE, in bounds; arrays are of shapes that broadcast."""
    out, axis = [], 0
    block = draw(st.sampled_from([(2,), (1,), (2, 2), (2, 1)]))
    while axis < len(SHAPE):
        kind = draw(st.sampled_from(["int", "slice", "slice", "array", "none", "stop", "mask", "ellipsis"]))
        size = SHAPE[axis]
        if kind == "stop":
            break
        if kind == "none":
            if sum(i is None for i in out) < 2:
                out.append(None)
            continue
        if kind == "ellipsis":
            if not any(i is Ellipsis for i in out):
                out.append(Ellipsis)
                axis = len(SHAPE) - draw(st.integers(0, len(SHAPE) - axis))
            continue
        if kind == "int":
            out.append(draw(st.integers(-size, size - 1)))
        elif kind == "slice":
            out.append(draw(slices(size)))
        elif kind == "array":
            shape = draw(st.sampled_from([block, block[-1:], (1,)]))
            values = draw(
                st.lists(st.integers(-size, size - 1), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
            )
            out.append(np.array(values, np.int32).reshape(shape))
        else:
            # As many true elements as the last axis of the other arrays, so that they broadcast.
            places = draw(st.permutations(range(size)))[: min(block[-1], size)]
            mask = np.zeros(size, bool)
            mask[list(places)] = True
            out.append(mask)
        axis += 1
    return tuple(out)


def reference():
    return np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)


@given(indices())
def test_getitem_is_numpys(idx):
    x = reference()
    try:
        expected = x[idx]
    except IndexError as error:
        if "out of bounds" not in str(error):  # those are moved inside
            with pytest.raises(IndexError):
                jnp.asarray(x)[idx]
        return
    got = jnp.asarray(x)[idx]
    assert got.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(got), expected)
    traced = jit(lambda v: v[idx])(x)  # by other operations: slices in place of windows
    np.testing.assert_array_equal(np.asarray(traced), expected)


@given(indices(), st.booleans())
def test_set_and_add_are_numpys(idx, scalar):
    x = reference()
    try:
        selected = x[idx]
    except IndexError:
        return
    values = np.float32(7) if scalar else 100 + np.arange(selected.size, dtype=np.float32).reshape(selected.shape)
    added = x.copy()
    np.add.at(added, idx, values)
    for run in (lambda f: f(jnp.asarray(x), values), lambda f: jit(f)(x, values)):
        np.testing.assert_array_equal(np.asarray(run(lambda a, v: a.at[idx].add(v))), added)
        # The winner among several values for one element is unspecified; set agrees where there is one.
        flat = np.arange(x.size).reshape(SHAPE)[idx].ravel()
        if len(set(flat.tolist())) == flat.size:
            expected = x.copy()
            expected[idx] = values
            np.testing.assert_array_equal(np.asarray(run(lambda a, v: a.at[idx].set(v))), expected)


@given(indices())
def test_gradient_of_getitem_counts_uses(idx):
    x = reference()
    try:
        x[idx]
    except IndexError:
        return
    expected = np.zeros_like(x)
    np.add.at(expected, idx, 1)
    np.testing.assert_array_equal(np.asarray(grad(lambda v: v[idx].sum())(x)), expected)


@given(indices())
def test_mapped_getitem_is_getitem_of_each(idx):
    x = np.stack([reference(), -reference()])
    try:
        expected = np.stack([row[idx] for row in x])
    except IndexError:
        return
    np.testing.assert_array_equal(np.asarray(vmap(lambda v: v[idx])(x)), expected)


def test_traced_scalar_indices():
    x = reference()
    f = jit(lambda v, i, j: (v[i], v[i, j], v[:, j, 1:], v[i, ..., j % 2]))
    for i, j in ((0, 1), (-1, -2), (2, 3)):
        for got, expected in zip(f(x, i, j), (x[i], x[i, j], x[:, j, 1:], x[i, ..., j % 2]), strict=True):
            np.testing.assert_array_equal(np.asarray(got), expected)


def test_out_of_bounds_reads_are_moved_inside_or_filled():
    x = jnp.asarray(reference())
    np.testing.assert_array_equal(np.asarray(x[7]), reference()[2])
    np.testing.assert_array_equal(np.asarray(x[-9]), reference()[0])
    np.testing.assert_array_equal(np.asarray(x[jnp.array([7, -9])]), reference()[[2, 0]])
    filled = np.asarray(x.at[jnp.array([7, 1])].get(mode="fill", fill_value=-1))
    np.testing.assert_array_equal(filled, np.stack([np.full((4, 2), -1, np.float32), reference()[1]]))
    assert np.isnan(np.asarray(x.at[7].get(mode="fill"))).all()
    assert int(jnp.arange(3).at[7].get(mode="fill")) == np.iinfo(np.int32).min


@pytest.mark.parametrize("mode", [None, "drop"])
@pytest.mark.parametrize("index", [9, -9, np.array([9, -9])])
def test_out_of_bounds_updates_are_dropped(mode, index):
    x = reference()
    for f in (lambda v: v.at[index].set(1, mode=mode), jit(lambda v: v.at[index].set(1, mode=mode))):
        np.testing.assert_array_equal(np.asarray(f(jnp.asarray(x))), x)


def test_out_of_bounds_updates_can_be_clipped():
    got = jnp.zeros(3).at[jnp.array([-9, 9])].set(jnp.array([1.0, 2.0]), mode="clip")
    np.testing.assert_array_equal(np.asarray(got), [1, 0, 2])


OPERATIONS = {
    "set": lambda a, v: v,
    "add": lambda a, v: a + v,
    "subtract": lambda a, v: a - v,
    "multiply": lambda a, v: a * v,
    "divide": lambda a, v: a / v,
    "power": lambda a, v: a**v,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("idx", [1, slice(1, 3), np.array([0, 2]), (slice(None), np.array([3, 1]))], ids=str)
def test_each_operation(name, idx):
    x = reference() + 1
    expected = x.copy()
    expected[idx] = OPERATIONS[name](x[idx], np.float32(3))
    got = getattr(jnp.asarray(x).at[idx], name)(3)
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-5)


def test_repeated_indices_accumulate():
    got = jnp.zeros(3).at[jnp.array([0, 0, 2])].add(jnp.array([1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(np.asarray(got), [3, 0, 4])


def test_apply_is_once_per_occurrence():
    got = jnp.ones(3).at[jnp.array([1, 1])].apply(lambda v: v * 3)
    np.testing.assert_array_equal(np.asarray(got), [1, 9, 1])


def test_values_take_the_dtype_of_the_array():
    with pytest.warns(FutureWarning, match="do not fit an array"):
        out = jnp.arange(3).at[0].set(1.5)
    assert out.dtype == np.int32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jnp.ones(3, jnp.float16).at[0].set(2.5).dtype == np.float16
        assert int(jnp.zeros(3, jnp.uint8).at[0].set(300)[0]) == 300 % 256


def test_static_indices_are_slices_and_traced_ones_windows():
    x = np.ones((3, 4), np.float32)
    names = lambda f, *args: [e.primitive.name for e in make_jaxpr(f)(*args).eqns]
    assert names(lambda v: v[1], x) == ["slice", "squeeze"]
    assert names(lambda v: v[1:, ::2], x) == ["slice"]
    assert names(lambda v: v[::-1], x) == ["rev"]
    assert names(lambda v: v[None], x) == ["broadcast_in_dim"]
    assert "dynamic_slice" in names(lambda v, i: v[i], x, 1)
    assert "gather" in names(lambda v, i: v[i], x, np.array([0, 1]))


ERRORS = [
    ("a", TypeError, "an index is not a text"),
    ([0, 1], TypeError, "a list as index"),
    (1.0, TypeError, "an integer or a mask"),
    ((0, 0, 0, 0), IndexError, "too many indices: 4 for"),
    ((Ellipsis, Ellipsis), IndexError, "single ellipsis"),
    (np.array([True, False]), IndexError, "boolean index did not match"),
    ((np.arange(2), np.arange(3)), IndexError, "could not be broadcast"),
]


@pytest.mark.parametrize(("idx", "error", "text"), ERRORS, ids=[str(e[0]) for e in ERRORS])
def test_wrong_indices_say_so(idx, error, text):
    with pytest.raises(error, match=text):
        jnp.asarray(reference())[idx]


def test_errors_of_traced_indices():
    with pytest.raises(NonConcreteBooleanIndexError, match=r"indexed by a traced mask of type bool\[3\]") as caught:
        jit(lambda v: v[v > 0])(np.ones(3))
    kind = type(caught.value)
    assert issubclass(kind, errors.JAXIndexError) and issubclass(kind, IndexError)
    assert code_of(caught.value) == "BX-TRACED-MASK" and f"raises {kind.__name__}" in kind.__doc__
    with pytest.raises(IndexError, match="known integers"):
        jit(lambda v, i: v[i : i + 1])(np.ones(3), 0)


def test_assignment_points_to_at():
    with pytest.raises(TypeError, match=r"x\.at\[i\]\.set"):
        jnp.ones(3)[0] = 1


def test_scalar_bools_make_axes():
    x = jnp.asarray(reference())
    assert x[True].shape == (1, *SHAPE)
    assert x[False].shape == (0, *SHAPE)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_take(axis):
    x = reference()
    i = np.array([[0, 1], [1, -1]])
    np.testing.assert_array_equal(np.asarray(jnp.take(x, i, axis=axis)), np.take(x, i, axis=axis))
    np.testing.assert_array_equal(
        np.asarray(jnp.take(x, i + 30, axis=axis, mode="wrap")), np.take(x, i + 30, axis=axis, mode="wrap")
    )
    np.testing.assert_array_equal(
        np.asarray(jnp.take(x, i * 30, axis=axis, mode="clip")), np.take(x, i * 30, axis=axis, mode="clip")
    )


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_along_axis(axis):
    x = reference()
    order = np.argsort(-x, axis=axis)
    np.testing.assert_array_equal(np.asarray(jnp.take_along_axis(x, order, axis)), np.take_along_axis(x, order, axis))
    expected = x.copy()
    np.put_along_axis(expected, order[:1], -1, axis)
    got = jnp.put_along_axis(jnp.asarray(x), order[:1], -1, axis, inplace=False)
    np.testing.assert_array_equal(np.asarray(got), expected)


@pytest.mark.parametrize("shape, axis", [((0, 3), 0), ((3, 0), 1), ((0,), 0)])
@pytest.mark.parametrize("mode", [None, "clip", "fill", "promise_in_bounds"])
def test_take_along_an_empty_axis_gives_zeros(shape, axis, mode):
    """As upstream does; NumPy raises."""
    places = np.zeros([n or 2 for n in shape], np.int32)
    found = jnp.take_along_axis(np.ones(shape, np.float32), places, axis, mode)
    np.testing.assert_array_equal(np.asarray(found), np.zeros(places.shape, np.float32))


def test_take_along_axis_broadcasts():
    x = reference()
    i = np.array([[[1], [0], [2], [1]]])
    np.testing.assert_array_equal(np.asarray(jnp.take_along_axis(x, i, 0)), np.take_along_axis(x, i, 0))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=8), st.integers(0, 10))
def test_nonzero_of_given_size(values, size):
    x = np.array(values)
    (exact,) = np.nonzero(x)
    expected = np.full(size, -1)
    expected[: min(size, len(exact))] = exact[:size]
    for f in (jnp.nonzero, jit(lambda v: jnp.nonzero(v, size=size, fill_value=-1))):
        got = f(x, size=size, fill_value=-1) if f is jnp.nonzero else f(x)
        np.testing.assert_array_equal(np.asarray(got[0]), expected)


def test_nonzero_needs_a_size_when_traced():
    with pytest.raises(errors.ConcretizationTypeError, match="size"):
        jit(jnp.nonzero)(np.ones(3))


def test_gradient_through_updates():
    x = np.arange(4.0, dtype=np.float32)
    g = grad(lambda v: (v.at[1].set(5.0) ** 2).sum())(x)
    np.testing.assert_allclose(np.asarray(g), [0, 0, 4, 6])
    g = grad(lambda v: (jnp.zeros(4).at[jnp.array([1, 1, 2])].add(v[:3]) ** 2).sum())(x)
    np.testing.assert_allclose(np.asarray(g), [2, 2, 4, 0])


def test_lax_scalars_index():
    x = jnp.asarray(reference())
    np.testing.assert_array_equal(np.asarray(x[lax.asarray(2)]), reference()[2])
    np.testing.assert_array_equal(np.asarray(x[np.int64(-1), np.array(1)]), reference()[-1, 1])


OUTSIDE = [
    (3, 3, 0),
    (-4, -4, 0),
    ((1, 4), 4, 1),
    ((..., -3), -3, 2),
    (np.int32(3), 3, 0),
    ((np.array([0, 1]), 7), 7, 1),
    ((slice(1, 3), 9), 9, 1),
]


@pytest.mark.parametrize("index, given, axis", OUTSIDE)
@pytest.mark.parametrize("how", [lambda f: f, jit, make_jaxpr], ids=["eager", "jit", "make_jaxpr"])
def test_known_positions_outside_are_refused_on_demand(how, index, given, axis):
    x = jnp.asarray(reference())
    read = how(lambda x: x[index])
    read(x)  # it is allowed by default, and is read again once it is not
    with flags.check_static_indices(True):
        with pytest.raises(IndexError, match=f"index {given} is out of bounds for axis {axis} "):
            read(x)
        for mode in (None, "promise_in_bounds"):
            with pytest.raises(IndexError, match=f"index {given} is"):
                how(lambda x: x.at[index].get(mode=mode))(x)  # noqa: B023
        for mode in ("clip", "fill"):
            how(lambda x: x.at[index].get(mode=mode))(x)  # noqa: B023
    read(x)


def test_only_known_positions_out_of_bounds_are_refused():
    x = jnp.asarray(reference())
    with flags.check_static_indices(True):
        for i in (2, -3, (..., 1), (2, 3, -2), slice(0, 9), (-1, slice(7, 9)), np.array([0, 5]), (None, 2)):
            assert x[i].ndim <= 4
        np.testing.assert_array_equal(jit(lambda x, i: x[i])(x, 3), reference()[2])
        np.testing.assert_array_equal(x.at[3].set(0), reference())  # an update there is dropped, as always
        with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
            vmap(lambda row: row[4])(x)
        with pytest.raises(IndexError, match="index -1 is"):
            x.at[-1].get(wrap_negative_indices=False)


NO_INDEX = np.zeros(0, np.int32)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (0, 0), (0, 4, 2), (3, 0, 2)], ids=str)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_empty_indices_of_empty_arrays(shape, rank):
    x = np.zeros(shape, np.float32)
    for idx in (
        (NO_INDEX,) * rank,
        (slice(None), NO_INDEX)[:rank],
        (..., NO_INDEX),
        (NO_INDEX[None], NO_INDEX[:, None])[:rank],
    ):
        try:
            expected = x[idx]
        except IndexError:
            continue
        assert jnp.asarray(x)[idx].shape == expected.shape
    assert jnp.diagonal(jnp.zeros((0, 4))).shape == (0,) and jnp.take(x, NO_INDEX).shape == (0,)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_along_an_axis_the_others_keep_their_order(axis):
    x = np.arange(120.0, dtype=np.float32).reshape(2, 3, 4, 5)
    for function in (lambda v: v.sum(), lambda v: v * 2, lambda v: v[:, None] * v[None]):
        expected = np.apply_along_axis(function, axis, x)
        np.testing.assert_allclose(np.asarray(jnp.apply_along_axis(function, axis, x)), expected, rtol=1e-6)


def cut(x, axis, start, size):
    """The reference for a window of known size, which is moved inside."""
    start = start + x.shape[axis] if start < 0 else start
    start = min(max(start, 0), x.shape[axis] - size)
    return x[(slice(None),) * axis + (slice(start, start + size),)]


@pytest.mark.parametrize("start", [-9, -3, 0, 2, 4, 7])
@pytest.mark.parametrize("how", ["known", "an array", "traced"])
def test_slices_with_a_size(start, how):
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    run = {"known": lambda f: f(start), "an array": lambda f: f(jnp.int32(start)), "traced": lambda f: jit(f)(start)}[
        how
    ]
    np.testing.assert_array_equal(run(lambda i: jnp.asarray(x)[Slice(i, 3)]), cut(x, 0, start, 3))
    np.testing.assert_array_equal(run(lambda i: jnp.asarray(x)[..., Slice(i, 2)]), cut(x, 1, start, 2))
    np.testing.assert_array_equal(run(lambda i: jnp.asarray(x)[1, None, Slice(i, 2)]), cut(x, 1, start, 2)[1, None])
    rows = np.array([2, 0])
    np.testing.assert_array_equal(run(lambda i: jnp.asarray(x)[rows, Slice(i, 2)]), cut(x, 1, start, 2)[rows])
    grown = run(lambda i: grad(lambda x: jnp.sum(x[:, Slice(i, 2)] ** 2))(jnp.asarray(x)))
    expected = np.zeros_like(x)
    cut(expected, 1, start, 2)[...] = 2 * cut(x, 1, start, 2)
    np.testing.assert_allclose(grown, expected)


def test_slices_with_a_size_are_written():
    x = np.arange(6, dtype=np.float32)
    for start in (1, jnp.int32(1)):
        np.testing.assert_array_equal(jnp.asarray(x).at[Slice(start, 3)].set(0), [0, 0, 0, 0, 4, 5])
        np.testing.assert_array_equal(jnp.asarray(x).at[Slice(start, 3)].add(1), [0, 2, 3, 4, 4, 5])


def test_slices_with_a_size_and_a_stride():
    x = jnp.arange(10)
    assert list(x[Slice(1, 3, 2)]) == [1, 3, 5] and list(x[Slice(-3, 2, 2)]) == [7, 9]
    assert list(x[Slice(-6, 2, 2)]) == [4, 6]
    with pytest.raises(NotImplementedError, match="stride of 1"):
        jit(lambda i: x[Slice(i, 3, 2)])(1)
    with pytest.raises(IndexError, match="11 positions does not fit into axis 0 of size 10"):
        x[Slice(0, 11)]
    with pytest.raises(TypeError, match="starts at an integer"):
        x[Slice(np.arange(2), 2)]


def test_positions_out_of_bounds_may_be_ignored():
    found = jnp.ravel_multi_index((np.array([1, 5]), np.array([9, 3])), (3, 4), mode="ignore")
    assert found.tolist() == [1 * 4 + 9, 5 * 4 + 3]


def test_a_traced_axis_is_refused():
    with pytest.raises(errors.ConcretizationTypeError, match="an axis, which is part of the program"):
        jit(lambda x, axis: jnp.min(x, axis))(np.ones(3, np.float32), 0)


def test_a_traced_bound_of_a_slice_names_its_argument():
    def part(x, count):
        return x[:count]

    with pytest.raises(IndexError, match="the bounds of a slice are known integers") as found:
        jit(part)(jnp.arange(3.0), 2)
    assert "depends on the value of the argument count." in str(found.value)
    assert str(found.value).endswith("BX-SHAPE-VALUE")
