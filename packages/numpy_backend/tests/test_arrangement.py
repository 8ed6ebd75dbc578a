"""Shaping, reductions, cumulative, sorting and window functions: errors, shortcuts, and the primitives bound."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.staging import make_jaxpr
from bedrax.lax import filling

X = np.ones((3, 4), np.float32)
N = np.ones((3, 4), np.int32)


def primitives_of(fun, *args):
    return [str(eqn.primitive) for eqn in make_jaxpr(fun)(*args).eqns]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: lax.broadcast_in_dim(X, (2, 3, 4), (1,)), TypeError, "one dimension per axis"),
        (lambda: lax.broadcast_in_dim(X, (2, 3, 5), (1, 2)), TypeError, "or that of the result, got shape"),
        (lambda: lax.broadcast_in_dim(X, (2, 3, 5), (1, 3)), TypeError, "are not all axes of the result, of shape"),
        (lambda: lax.broadcast_in_dim(np.ones((3, 3), np.float32), (4, 3), (1, 1)), TypeError, "strictly increasing"),
        (lambda: lax.broadcast_shapes((2, 1), (3, 3)), ValueError, "Incompatible shapes for broadcasting"),
        (lambda: lax.expand_dims(X, (0, 0)), ValueError, "dimensions are distinct, got"),
        (lambda: lax.expand_dims(X, (9,)), ValueError, "axis 9 is out of bounds for array of dimension 3"),
        (lambda: lax.reshape(X, (5, 3)), TypeError, "elements, .5, 3. 15"),
        (lambda: lax.reshape(X, (-1, 3)), TypeError, "lengths are not negative, got new_sizes"),
        (lambda: lax.reshape(X, (12,), (0, 0)), TypeError, "is not a permutation of the axes of shape"),
        (lambda: lax.transpose(X, (0, 0)), TypeError, "is not a permutation of the axes of shape"),
        (lambda: lax.squeeze(X, (0,)), ValueError, "squeeze drops axes of length"),
        (lambda: lax.collapse(X, 1, 0), ValueError, "are not a range"),
        (lambda: lax.rev(X, (0, 0)), TypeError, "dimensions are distinct, got"),
        (lambda: lax.rev(X, (2,)), TypeError, "are not all among the axes of shape"),
        (lambda: lax.slice(X, (0,), (3, 3)), TypeError, "start_indices has one entry per axis of shape"),
        (lambda: lax.slice(X, (0, 0), (3, 5)), TypeError, "are beyond the operand, of shape"),
        (lambda: lax.slice(X, (-1, 0), (3, 4)), TypeError, "start_indices are not negative, got"),
        (lambda: lax.slice(X, (2, 0), (1, 4)), TypeError, "lie before start_indices"),
        (lambda: lax.slice(X, (0, 0), (1, 4), (0, 1)), TypeError, "strides are positive, got"),
        (lambda: lax.index_in_dim(X, 7), IndexError, "index 7 is out of bounds for axis 0 with size 3"),
        (
            lambda: lax.pad(X, 0, ((0, 0, 0), (1, 1, 2))),
            TypeError,
            "operand and padding_value have one dtype, got float",
        ),
        (lambda: lax.pad(X, 0.0, ((0, 0, 0),)), ValueError, "low, high, interior"),
        (lambda: lax.pad(X, 0.0, ((0, 0, 0), (-3, -3, 0))), ValueError, "sizes are not negative"),
        (lambda: lax.pad(X, 0.0, ((0, 0, 0), (0, 0, -1))), ValueError, "interior padding is not negative, got"),
        (lambda: lax.pad(X, np.ones(2, "f"), ((0, 0, 0),) * 2), ValueError, "padding_value is a scalar, got shape"),
        (lambda: lax.concatenate([X, np.ones((3,), "f")], 0), TypeError, "the arrays must have one rank, got shapes"),
        (
            lambda: lax.concatenate([X, np.ones((3, 5), "f")], 0),
            TypeError,
            "concatenate along axis 0: the other axes must have equal lengths, got shapes",
        ),
        (
            lambda: lax.concatenate([X, N], 0),
            TypeError,
            r"one dtype, got float32, int32; (jnp|bedrax.numpy).concatenate .*converts them",
        ),
        (lambda: lax.concatenate([], 0), ValueError, "at least one array is needed"),
        (lambda: lax.stack([X, N]), TypeError, "lax.stack takes operands of one dtype"),
        (lambda: lax.stack([X, X[0]]), ValueError, "the arrays have one shape, got"),
        (lambda: lax.unstack(np.float32(1)), ValueError, "axis 0 is out of bounds for array of dimension 0"),
        (lambda: lax.split(X, (1, 3), 0), ValueError, "sum to 4; axis 0 of shape .* has length"),
        (lambda: lax.tile(X, (1,)), TypeError, "reps has one entry per axis of shape"),
        (lambda: lax.iota(np.int32, -1), TypeError, "lengths are not negative, got shape"),
        (lambda: lax.iota(bool, 3), TypeError, "iota counts in a dtype of numbers, got bool"),
        (lambda: lax.broadcasted_iota(np.int32, (3,), 1), ValueError, "is not an axis of shape"),
        (lambda: lax.full((3,), np.ones(2)), TypeError, "fill_value is a scalar, got shape"),
        (lambda: lax.reduce_sum(X, (3,)), ValueError, "a reduction over axes"),
        (lambda: lax.reduce_sum(X, (-1,)), ValueError, "a reduction over axes"),
        (lambda: lax.reduce_sum(X, (0, 0)), ValueError, "a reduction names an axis twice"),
        (lambda: lax.reduce_sum(X > 0, (0,)), TypeError, "reduce_sum does not accept dtype bool"),
        (lambda: lax.reduce_and(X, (0,)), TypeError, "reduce_and does not accept dtype float"),
        (lambda: lax.argmax(X, 0, np.float32), TypeError, "index_dtype is an integer dtype, got float"),
        (lambda: lax.argmax(X, 5, np.int32), ValueError, "is out of bounds for shape"),
        (lambda: lax.argmax(X[:0], 0, np.int32), ValueError, "argmin and argmax of an axis without elements"),
        (
            lambda: lax.reduce(X, (0.0, 0.0), lax.add, (0,)),
            ValueError,
            "operands are structured like the initial values, got PyTreeDef",
        ),
        (lambda: lax.reduce(X, 2.0, lambda a, b: lax.gt(a, b), (0,)), TypeError, "the computation gets float"),
        (lambda: lax.cumsum(X, 2), ValueError, "axis 2 is out of bounds"),
        (lambda: lax.cumsum(X, -1), ValueError, "count from the first"),
        (lambda: lax.cumsum(X > 0), TypeError, "cumsum does not accept dtype bool"),
        (lambda: lax.sort(X, 3), ValueError, "axis 3 is out of bounds for array of dimension 2"),
        (lambda: lax.sort((X, X), num_keys=3), ValueError, r"the number of operands"),
        (lambda: lax.sort((X, X), num_keys=1.5), TypeError, r"sort: num_keys must be an integer, got 1.5"),
        (lambda: lax.sort((X, X), num_keys=None), TypeError, r"sort: num_keys must be an integer, got None"),
        (lambda: lax.sort(()), TypeError, "at least one operand is needed"),
        (lambda: lax.sort((X, X[0])), TypeError, "the operands have one shape, got"),
        (lambda: lax.top_k(X, 9), ValueError, "is more than axis"),
        (lambda: lax.top_k(X, -2), ValueError, "k is not negative, got"),
        (lambda: lax.top_k(X + 1j, 2), ValueError, "top_k takes real numbers, got complex"),
        (lambda: lax.approx_max_k(N, 2), ValueError, "approx_top_k takes floats, got int"),
        (lambda: lax.approx_max_k(X, 5), ValueError, "is more than the axis holds"),
        (lambda: lax.approx_max_k(X, 1, recall_target=2.0), ValueError, "recall_target is in"),
        (
            lambda: lax.reduce_window(X, 0.0, lax.add, (2,), (1,), "VALID"),
            TypeError,
            "window_dimensions has one per axis of shape",
        ),
        (
            lambda: lax.reduce_window(X, 0.0, lax.add, (2, 2), (1,), "VALID"),
            TypeError,
            "window_strides has one per window dimension",
        ),
        (lambda: lax.reduce_window(X, 0.0, lax.add, (0, 2)), TypeError, "window_dimensions are positive, got"),
        (lambda: lax.reduce_window(X, 0.0, lax.add, (2, 2), (1, 1), "FOO"), RuntimeError, "or pairs, got"),
        (lambda: lax.padtype_to_pads((3, 4), (2, 2), (2, 1), "FOO"), RuntimeError, "or pairs, got"),
    ],
)
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: lax.reshape(x, (3, 4)),
        lambda x: lax.transpose(x, (0, 1)),
        lambda x: lax.squeeze(x, ()),
        lambda x: lax.broadcast_in_dim(x, (3, 4), (0, 1)),
        lambda x: lax.expand_dims(x, ()),
        lambda x: lax.concatenate([x], 0),
        lambda x: lax.pad(x, 0.0, ((0, 0, 0), (0, 0, 0))),
        lambda x: lax.collapse(x, 0, 1),
    ],
)
def test_functions_without_effect_bind_no_primitive(fun):
    assert primitives_of(fun, X) == []


@pytest.mark.parametrize(
    ("init", "computation", "expected"),
    [
        (0.0, lax.add, "reduce_sum"),
        (1.0, lax.add, "reduce"),
        (1.0, lax.mul, "reduce_prod"),
        (-np.inf, lax.max, "reduce_max"),
        (0.0, lax.max, "reduce"),
        (np.float32(np.inf), lax.min, "reduce_min"),
        (0.0, lambda a, b: lax.add(a, b), "reduce"),
    ],
)
def test_reduce_of_a_monoid_is_its_primitive(init, computation, expected):
    assert primitives_of(lambda x: lax.reduce(x, init, computation, (0,)), X) == [expected]


def test_reduce_of_an_integer_monoid_is_its_primitive():
    low = np.iinfo(np.int32).min
    assert primitives_of(lambda x: lax.reduce(x, low, lax.max, (0,)), N) == ["reduce_max"]
    assert primitives_of(lambda x: lax.reduce(x, -1, lax.bitwise_and, (0,)), N) == ["reduce_and"]
    assert primitives_of(lambda x: lax.reduce(x, 0, lax.bitwise_xor, (0, 1)), N) == ["reduce_xor"]


def test_reduce_window_of_a_monoid_is_its_primitive():
    of = lambda init, fun: primitives_of(lambda x: lax.reduce_window(x, init, fun, (2, 2), None, "SAME"), X)
    assert of(0.0, lax.add) == ["reduce_window_sum"]
    assert of(-np.inf, lax.max) == ["reduce_window_max"]
    assert of(np.inf, lax.min) == ["reduce_window_min"]
    assert of(1.0, lax.mul) == ["reduce_window"]


def test_paddings_by_name():
    assert lax.padtype_to_pads((3, 4), (2, 2), (2, 1), "SAME") == [(0, 1), (0, 1)]
    assert lax.padtype_to_pads((3, 4), (2, 2), (2, 1), "SAME_LOWER") == [(1, 0), (1, 0)]
    assert lax.padtype_to_pads((3, 4), (2, 2), (2, 1), "VALID") == [(0, 0), (0, 0)]
    assert lax.reduce_window_shape_tuple((3, 4), (2, 2), (1, 1), ((0, 0), (1, 1))) == (2, 5)


def test_weak_types_and_dtypes_of_full():
    assert lax.full((2,), 1.0).weak_type
    assert not lax.full((2,), 1.0, np.float32).weak_type
    assert lax.full((2,), 1, "bfloat16").dtype == "bfloat16"
    assert lax.full_like(1, 2).weak_type
    out = lax.full_like(np.float32(1), 2)
    assert (out.dtype, out.weak_type, float(out)) == (np.float32, False, 2.0)
    assert lax.full_like(X, True, bool, (2,)).shape == (2,)
    assert lax.reshape(5, (1, 1)).weak_type


def test_zeros_of_types_without_tangents():
    from bedrax.core import dtypes
    from bedrax.core.avals import ShapedArray

    out = filling.zeros_of(ShapedArray((2,), dtypes.float0))
    assert out.dtype == dtypes.float0 and out.shape == (2,)


def test_jaxprs_omit_parameters_that_types_show():
    assert "broadcast_in_dim[broadcast_dimensions=(1,)]" in str(
        make_jaxpr(lambda x: lax.broadcast_in_dim(x, (2, 3), (1,)))(X[:, 0])
    )
    assert "broadcast_in_dim 1.0" in str(make_jaxpr(lambda: lax.full((2, 3), 1.0))())


def test_shapes_of_lists_and_numpy_integers():
    assert lax.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert lax.broadcast_to_rank(X, 4).shape == (1, 1, 3, 4)
    assert lax.broadcast_like(X[0], X).shape == (3, 4)
    assert lax.reshape(X, [np.int64(4), 3]).shape == (4, 3)
    assert lax.broadcast(X, (2, 5)).shape == (2, 5, 3, 4)
    assert lax.collapse(X, 0).shape == (12,)


def test_approximate_search_keeps_the_published_number_of_candidates():
    size = lambda shape, k, recall: (
        lax.approx_max_k(np.zeros(shape, "f"), k, recall_target=recall, aggregate_to_topk=False)[0].shape
    )
    assert size((1000,), 2, 0.95) == (1000,)
    assert size((5000,), 2, 0.95) == (2048,)
    assert size((3, 5000), 50, 0.95) == (3, 1280)
    assert size((3, 5000), 50, 1.0) == (3, 5000)
    assert size((3, 200), 1, 0.5) == (3, 128)


def test_a_combiner_is_traced_once_per_type():
    traced = []

    def combine(a, b):
        traced.append(a.dtype)
        return lax.add(b, a)

    for _ in range(3):
        assert lax.reduce(X, 0.0, combine, (0,)).tolist() == [3.0] * 4
    assert lax.reduce(N, 0, combine, (0,)).tolist() == [3] * 4
    assert traced == [np.float32, np.int32]


def test_combiners_must_not_close_over_traced_values():
    def fun(x):
        return lax.reduce(X, 0.0, lambda a, b: lax.add(lax.add(a, b), x), (0,))

    with pytest.raises(NotImplementedError, match="closes over a traced value"):
        make_jaxpr(fun)(np.float32(1))


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3", "float8_e5m2fnuz", "bfloat16", "float16"])
def test_sort_of_floats_puts_nan_last(name):
    x = np.array([1, np.nan, -1, 0, 5], np.float32).astype(dtypes.as_dtype(name))
    assert np.asarray(lax.sort(x)).astype(np.float32).tolist()[:4] == [-1, 0, 1, 5]
    assert np.asarray(lax.sort((x, np.arange(5)), num_keys=1)[1]).tolist() == [2, 3, 0, 4, 1]
