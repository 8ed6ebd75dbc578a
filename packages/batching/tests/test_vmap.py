"""`vmap` as users call it: axes in and out, names, sizes; and its errors if they do not fit."""

import functools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bedrax import lax
from bedrax.batching import custom_vmap, sequential_vmap, vmap
from bedrax.core import config
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr

PROGRAMS = Path(__file__).with_name("programs")

f32 = np.float32
X = np.arange(3, dtype=f32)
M = np.arange(6, dtype=f32).reshape(2, 3)


def total(x):
    return lax.reduce_sum(x, axes=tuple(range(len(x.shape))))


def add(a, b):
    return lax.add(a, b)


# ---- axes


def test_axes_in():
    np.testing.assert_allclose(np.asarray(vmap(total)(M)), M.sum(1))
    np.testing.assert_allclose(np.asarray(vmap(total, in_axes=1)(M)), M.sum(0))
    np.testing.assert_allclose(np.asarray(vmap(total, in_axes=-1)(M)), M.sum(0))
    np.testing.assert_allclose(np.asarray(vmap(add, in_axes=(0, None))(X, f32(1))), X + 1)
    np.testing.assert_allclose(np.asarray(vmap(add, in_axes=[None, 0])(f32(1), X)), X + 1)


@pytest.mark.parametrize("in_axes", [(0, 0), (1, 0), (None, 0), (0, None)])
def test_no_examples_of_an_index(in_axes):
    read = lambda x, i: lax.dynamic_slice(x, (i,), (2,))
    write = lambda x, i: lax.dynamic_update_slice(x, np.ones(2, f32), (i,))
    x = np.zeros({0: (0, 3), 1: (3, 0), None: (3,)}[in_axes[0]], f32)
    i = np.zeros(0 if in_axes[1] == 0 else (), np.int32)
    for f, n in ((read, 2), (write, 3)):
        for transformed in (lambda f: f, jit):
            assert transformed(vmap(f, in_axes))(x, i).shape == (0, n)
        # In a second batch, the rule of the gather that the first one made is used.
        outer = vmap(vmap(f, in_axes))
        assert outer(np.zeros((4, *x.shape), f32), np.zeros((4, *i.shape), np.int32)).shape == (4, 0, n)
        assert outer(np.zeros((0, *x.shape), f32), np.zeros((0, *i.shape), np.int32)).shape == (0, 0, n)


def test_axes_of_containers():
    f = lambda t, k: lax.mul(total(t["a"]), lax.mul(t["b"], k))
    tree = {"a": M, "b": f32(2)}
    expected = M.sum(0) * 2 * X
    np.testing.assert_allclose(np.asarray(vmap(f, in_axes=({"a": 1, "b": None}, 0))(tree, X)), expected)
    np.testing.assert_allclose(np.asarray(vmap(lambda *, k: lax.mul(k, 2.0))(k=X)), 2 * X)  # by keyword: axis 0


def test_axes_out():
    f = lambda x: {"x": x, "sum": total(x), "const": f32(7)}
    out = vmap(f, out_axes={"x": 1, "sum": 0, "const": None})(M)
    np.testing.assert_allclose(np.asarray(out["x"]), M.T)
    assert out["const"] == 7 and out["sum"].shape == (2,)
    assert vmap(lambda x: x, in_axes=1, out_axes=-1)(M).shape == (2, 3)
    assert vmap(lambda x: f32(1))(X).shape == (3,)  # A result that does not depend on the batch is repeated.
    assert vmap(lambda: f32(1), axis_size=4)().shape == (4,)


def test_maps_nest():
    outer = vmap(vmap(add, in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_allclose(np.asarray(outer(X, X)), np.add.outer(X, X))


@pytest.mark.parametrize("search", [lax.approx_max_k, lax.approx_min_k])
def test_candidates_of_a_mapped_search_are_those_of_each_row(search):
    """Their number depends on the rank of the operand."""
    rows = np.random.default_rng(0).standard_normal((2, 3000)).astype(f32)
    candidates = lambda row: search(row, 5, aggregate_to_topk=False)
    expected = [np.stack(parts) for parts in zip(*map(candidates, rows), strict=True)]
    assert expected[0].shape == (2, 2048)
    for found in (vmap(candidates)(rows), vmap(jit(candidates))(rows), vmap(candidates, 1)(rows.T)):
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_names_give_collectives():
    np.testing.assert_allclose(np.asarray(vmap(lambda x: lax.psum(x, "i"), axis_name="i")(X)), [3, 3, 3])
    np.testing.assert_allclose(np.asarray(vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(X)), [2, 2, 2])
    np.testing.assert_allclose(np.asarray(vmap(lambda x: lax.axis_index("i"), axis_name="i")(X)), [0, 1, 2])
    assert vmap(lambda x: lax.psum(1, "i"), axis_name="i")(X).tolist() == [3, 3, 3]
    rolled = vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), axis_name="i")(X)
    np.testing.assert_allclose(np.asarray(rolled), [2, 0, 1])
    both = vmap(vmap(lambda x: lax.psum(x, ("i", "j")), axis_name="i"), axis_name="j")(M)
    np.testing.assert_allclose(np.asarray(both), np.full((2, 3), M.sum()))
    assert vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(X).shape == (3, 3)
    with pytest.raises(NameError, match="no axis named 'j' is bound here; the bound axes: 'i'"):
        vmap(lambda x: lax.psum(x, "j"), axis_name="i")(X)


# ---- errors: the argument by its path, the sizes, the call again, and the remedy


@pytest.mark.parametrize(
    "run, error, text",
    [
        (
            lambda: vmap(add)(X, np.ones(4, f32)),
            ValueError,
            "vmap: mapped axes are of one size, but differ in vmap(add, in_axes=0, out_axes=0)(f32[3], f32[4]):\n"
            "  * 1 axis of size 3: axis 0 of argument a of type f32[3];\n"
            "  * 1 axis of size 4: axis 0 of argument b of type f32[4]",
        ),
        (
            lambda: vmap(add, in_axes=(1, 0))({"w": [M, M]}, X[:2]),
            ValueError,
            "vmap: mapped axes are of one size, but differ in vmap(add, in_axes=(1, 0), out_axes=0)(<dict of 2"
            " leaves>, f32[2]):\n"
            "  * 2 axes of size 3: axis 1 of argument a['w'][0] of type f32[2,3], axis 1 of argument a['w'][1] of type"
            " f32[2,3];\n"
            "  * 1 axis of size 2: axis 0 of argument b of type f32[2]",
        ),
        (
            lambda: vmap(total, axis_size=4)(X),
            ValueError,
            "vmap: mapped axes are of one size, but differ in vmap(total, in_axes=0, out_axes=0,"
            " axis_size=4)(f32[3]):\n  * axis_size=4 was given;\n  * 1 axis of size 3: axis 0 of argument x of type f32[3]",
        ),
        (
            lambda: vmap(add, in_axes=(0, 2))(X, M),
            ValueError,
            "vmap: axis 2 of args[1] is to be mapped, but its shape is (2, 3), in vmap(add, in_axes=(0, 2),"
            " out_axes=0)(f32[3], f32[2,3])",
        ),
        (
            lambda: vmap(add, in_axes=(0, 0, 0))(X, X),
            ValueError,
            "vmap: in_axes has one entry per positional argument, got 3 entries for 2 arguments in vmap(add,",
        ),
        (
            lambda: vmap(total, in_axes="a")(X),
            TypeError,
            "vmap: in_axes is an int, None, or a tuple with one entry per positional argument, got 'a' of type"
            " <class 'str'>",
        ),
        (
            lambda: vmap(total, in_axes=({"a": "b"},))(X),
            TypeError,
            "vmap: in_axes holds ints and None, got ({'a': 'b'},)",
        ),
        (
            lambda: vmap(total, in_axes=None)(X),
            ValueError,
            "vmap: the size of the mapped axis is unknown: in_axes maps no argument, in vmap(total, in_axes=None,",
        ),
        (
            lambda: vmap(lambda: 1)(),
            ValueError,
            "vmap: the size of the mapped axis is unknown: there are no arrays among the arguments, in vmap(",
        ),
        (
            lambda: vmap(total, out_axes=None)(M),
            ValueError,
            "vmap: the result depends on a mapped argument, but its entry in out_axes is None, in vmap(total, in_axes=0,"
            " out_axes=None)(f32[2,3]). Give it an axis (0 puts the mapped axis first).",
        ),
        (
            lambda: vmap(lambda x: {"a": 1, "b": (x, x)}, out_axes={"a": None, "b": (0, None)})(M),
            ValueError,
            "vmap: the result['b'][1] depends on a mapped argument, but its entry in out_axes is None, in vmap(",
        ),
        (
            lambda: vmap(total, out_axes=3)(M),
            ValueError,
            "vmap: the entry of out_axes for the result of rank 0 is in range(-1, 1), got 3, in vmap(total, in_axes=0,"
            " out_axes=3)(f32[2,3])",
        ),
        (lambda: vmap(3), TypeError, "vmap needs a callable, got 3 of type <class 'int'>"),
    ],
)
def test_errors(run, error, text):
    with pytest.raises(error, match="^" + re.escape(text)):
        run()


@pytest.mark.parametrize("axes", [({"a": 0},), ({"a": 0, "c": 0},), ((0, 0),)])
def test_axes_that_are_no_prefix(axes):
    with pytest.raises(ValueError, match="in_axes"):
        vmap(lambda t: t, in_axes=axes)({"a": X, "b": X})


# ---- control flow


def test_a_mapped_predicate_selects():
    f = lambda x: lax.cond(lax.gt(x, f32(1)), lambda x: lax.mul(x, x), lax.neg, x)
    np.testing.assert_allclose(np.asarray(vmap(f)(X)), [0, -1, 4])
    names = [e.primitive.name for e in make_jaxpr(vmap(f))(X).eqns]
    assert "cond" not in names and "select_n" in names
    same = lambda x: lax.cond(True, lambda x: lax.mul(x, x), lax.neg, x)  # one predicate for all stays a branch
    assert "cond" in [e.primitive.name for e in make_jaxpr(vmap(same))(X).eqns]
    with config.enable_x64(True):
        np.testing.assert_allclose(np.asarray(vmap(f)(X)), [0, -1, 4])


def test_loops_that_end_at_different_times():
    f = lambda n: lax.while_loop(
        lambda c: lax.lt(c[0], n), lambda c: (lax.add(c[0], f32(1)), lax.add(c[1], c[0])), (f32(0), f32(0))
    )[1]
    np.testing.assert_allclose(np.asarray(vmap(f)(np.array([0, 3, 5], f32))), [0, 3, 10])


def test_only_carries_that_depend_on_the_batch_are_mapped():
    def f(x):
        return lax.scan(lambda c, k: ((lax.add(c[0], k), lax.add(c[1], x)), None), (f32(0), f32(0)), np.ones(4, f32))[0]

    jaxpr = make_jaxpr(vmap(f, out_axes=(None, 0)))(X)
    (loop,) = [e for e in jaxpr.eqns if e.primitive.name == "scan"]
    assert sorted(v.aval.shape for v in loop.outvars) == [(), (3,)]


def test_effects_under_a_mapped_predicate_are_refused():
    from bedrax.lax.primitives.callbacks import io_callback

    f = lambda x: lax.cond(lax.gt(x, f32(1)), lambda: io_callback(print, None, x), lambda: None)
    with pytest.raises(NotImplementedError, match="computes every branch"):
        vmap(f)(X)


@pytest.mark.parametrize("ordered", [False, True])
def test_debug_callbacks_run_for_each_element(ordered):
    from bedrax.lax.primitives.callbacks import debug_callback

    def run(f, *args):
        seen = []
        note = lambda x: debug_callback(lambda x: seen.append(float(x)), x, ordered=ordered)
        out = vmap(functools.partial(f, note))(*args)
        return seen, np.asarray(out).tolist()

    xs = np.arange(3, dtype=f32)

    def branches(note, x):
        return lax.cond(lax.gt(x, f32(1)), lambda: (note(x), x)[1], lambda: (note(lax.neg(x)), f32(5))[1])

    def loop(note, x):
        return lax.while_loop(lambda c: lax.lt(c, f32(2)), lambda c: (note(c), lax.add(c, f32(1)))[1], x)

    seen, out = run(lambda note, x: (note(x), x)[1], xs)
    assert (seen, out) == ([0, 1, 2], [0, 1, 2])
    seen, out = run(branches, xs)  # also those that do not take the branch
    assert sorted(seen) == [-2, -1, 0, 0, 1, 2] and out == [5, 5, 2]
    seen, out = run(loop, xs)
    assert sorted(seen) == [0, 1, 1, 2, 2, 2] and out == [2, 2, 2]


# ---- batching rules of users


def test_custom_vmap():
    @custom_vmap
    def f(x, y):
        return lax.mul(x, y)

    seen = []

    @f.def_vmap
    def rule(size, batched, x, y):
        seen.append((size, batched))
        return lax.mul(x, lax.broadcast_in_dim(y, x.shape, ()) if not batched[1] else y), True

    np.testing.assert_allclose(np.asarray(vmap(f, in_axes=(0, None))(X, f32(2))), 2 * X)
    np.testing.assert_allclose(np.asarray(jit(vmap(f))(X, X)), X * X)
    assert seen == [(3, [True, False]), (3, [True, True])]
    np.testing.assert_allclose(float(f(f32(2), f32(3))), 6)


def test_sequential_vmap():
    shapes = []

    @sequential_vmap
    def f(x):
        shapes.append(x.shape)
        return lax.mul(x, 2.0)

    np.testing.assert_allclose(np.asarray(vmap(f)(M)), 2 * M)
    assert set(shapes) == {(3,)}


def test_map_in_batches():
    for n in (1, 2, 3, 5):
        np.testing.assert_allclose(np.asarray(lax.map(total, np.tile(M, (2, 1)), batch_size=n)), np.tile(M.sum(1), 2))


def test_map_in_batches_without_vmap_names_the_package_to_install():
    program = PROGRAMS / "map_without_batching.py"
    subprocess.run([sys.executable, program], check=True)


# ---- values that all branches, or a loop's body, return unchanged


@pytest.mark.parametrize("count", [2, 3])
def test_results_that_every_branch_passes_on_are_not_mapped(count):
    branches = [lambda a, b, i=i: (a, b + i, b, a) for i in range(count)]
    which, a, b = np.arange(5, dtype=np.int32) % count, np.float32(2), np.arange(3, dtype=np.float32)

    def f(i, a, b):
        return lax.switch(i, branches, a, b)

    same, added, other, again = vmap(f, in_axes=(0, None, None), out_axes=(None, 0, None, None))(which, a, b)
    assert (same, again) == (2, 2)
    np.testing.assert_array_equal(other, b)
    np.testing.assert_array_equal(added, b + which[:, None])
    # The result is a mapped operand, mapped at the same axis.
    columns = np.arange(15, dtype=np.float32).reshape(3, 5)
    same, added, other, _ = vmap(f, in_axes=(0, None, 1), out_axes=(None, 0, 1, None))(which, a, columns)
    np.testing.assert_array_equal(other, columns)
    np.testing.assert_array_equal(added, columns.T + which[:, None])


def test_results_that_the_branches_exchange_are_mapped():
    def f(c, a, b):
        return lax.cond(c, lambda a, b: (a, b), lambda a, b: (b, a), a, b)

    found = vmap(f, in_axes=(0, None, None))(np.array([True, False]), np.float32(1), np.float32(2))
    np.testing.assert_array_equal(found, [[1, 2], [2, 1]])
    with pytest.raises(ValueError, match="out_axes"):
        vmap(f, in_axes=(0, None, None), out_axes=None)(np.array([True, False]), np.float32(1), np.float32(2))


def test_carries_that_a_body_passes_on_are_not_mapped():
    def f(n, step, moved):
        def body(c):
            return c[0] + 1, c[1], c[2] + c[1], c[3]

        return lax.while_loop(lambda c: c[0] < n, body, (np.int32(0), step, np.float32(0), moved))

    n = np.array([3, 0, 5], np.int32)
    count, step, total, moved = vmap(f, in_axes=(0, None, 1), out_axes=(0, None, 0, 0))(
        n, np.float32(2), np.arange(6, dtype=np.float32).reshape(2, 3)
    )
    np.testing.assert_array_equal(count, n)
    np.testing.assert_array_equal(total, 2.0 * n)
    np.testing.assert_array_equal(moved, np.arange(6).reshape(2, 3).T)
    assert step == 2


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled"])
def test_no_examples_of_a_callback(method):
    from bedrax.lax.primitives.callbacks import io_callback, pure_callback

    kind, x = np.zeros(2, f32), np.zeros((0, 3), f32)
    assert vmap(lambda x: pure_callback(lambda x: x[:2], kind, x, vmap_method=method))(x).shape == (0, 2)
    assert vmap(lambda x: io_callback(lambda x: x[:2], kind, x))(x).shape == (0, 2)
