"""Values and calls at the edges: empty, NaN, huge, negative, or missing arguments."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from bedrax.core import executors
from bedrax.numpy_backend.executor import executor as numpy_executor


def test_the_branch_not_taken_adds_no_nan():
    x = np.float32([-1, 0, 4])
    want = [2, 2, 0.25]

    def f(x):
        return lax.cond(x > 0, jnp.sqrt, lambda x: x * 2.0, x)

    np.testing.assert_allclose(jax.grad(lambda x: jax.vmap(f)(x).sum())(x), want)
    np.testing.assert_allclose(jax.jacrev(jax.vmap(f))(x), np.diag(want))
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(x), want)

    def g(x):
        return lax.switch(jnp.int32(x > 0), [lambda x: x * 2.0, lambda x: x / abs(x) * jnp.log(x)], x)

    np.testing.assert_allclose(jax.grad(lambda x: jax.vmap(g)(x).sum())(x), want)
    narrow = jax.grad(lambda x: jax.vmap(f)(x).sum())(jnp.asarray(x, jnp.bfloat16))
    np.testing.assert_allclose(np.float32(narrow), want)
    assert jax.vmap(lambda x: lax.cond(x > 0, lambda: 1, lambda: 2))(x).tolist() == [2, 2, 1]


@pytest.mark.parametrize("n", [0, 1])
def test_none_is_an_operand(n):
    branches = [lambda *a: 10 + len(a), lambda *a: 20 + len(a)]
    assert lax.switch(n, branches, operand=None) == 10 * (n + 1) + 1
    assert lax.cond(n == 0, *branches, operand=None) == 10 * (n + 1) + 1
    assert lax.cond(n == 0, *branches) == 10 * (n + 1)


def test_float_bounds():
    assert lax.fori_loop(0.5, 3.0, lambda i, x: x + i, 0.0) == 0.5 + 1.5 + 2.5


def test_empty_arrays_are_sorted_and_indexed():
    none = np.zeros(0, np.int32)
    assert jnp.setdiff1d(none, np.int32([2]), size=2).tolist() == [0, 0]
    assert [a.shape for a in lax.sort((none, none), num_keys=1)] == [(0,), (0,)]
    for shape, places, axis in (((0, 3), (0, 3), 0), ((2, 3), (0, 3), 0), ((0, 3), (0, 2), 1), ((1, 3), (0, 2), 1)):
        taken = jnp.take_along_axis(jnp.zeros(shape), np.zeros(places, np.int32), axis)
        assert taken.shape == np.take_along_axis(np.zeros(shape), np.zeros(places, int), axis).shape


def test_axes_may_change_their_order_in_broadcasting():
    x = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(lax.broadcast_in_dim(x, (3, 4, 2), (2, 0)), np.repeat(x.T[:, None], 4, 1))


IMPOSSIBLE = {
    "zeros": lambda n: jnp.zeros(n),
    "two axes": lambda n: jnp.ones((n, 2)),
    "full": lambda n: jnp.full((n,), 1),
    "eye": lambda n: jnp.eye(n),
    "tri": lambda n: jnp.tri(n),
    "broadcast_to": lambda n: jnp.broadcast_to(np.ones(3), (n, 3)),
    "iota": lambda n: lax.iota("int32", n),
    "normal": lambda n: jax.random.normal(jax.random.key(0), (n,)),
    "bits": lambda n: jax.random.bits(jax.random.key(0), (n,)),
    "split": lambda n: jax.random.split(jax.random.key(0), n),
    "inside": lambda n: jax.jit(lambda x: jnp.broadcast_to(x, (n,)).sum())(1.0),
    "next to 0": lambda n: jnp.zeros((n, 0)).sum(),
    "resize": lambda n: jax.image.resize(jnp.ones((2, 2)), (n, 2), "linear"),
    "bincount": lambda n: jnp.bincount(jnp.arange(3), length=n),
    "histogram": lambda n: jnp.histogram(jnp.ones(3), bins=n),
    "stride": lambda n: lax.reduce_window(jnp.ones(3), 0.0, lax.add, (2,), (0 * n,), "SAME"),
    "stride of conv": lambda n: lax.conv(jnp.ones((1, 1, 8)), jnp.ones((1, 1, 3)), (0 * n,), "SAME"),
}


@pytest.mark.parametrize("n", [-2, 2**62])
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_sizes_are_errors(name, n):
    with pytest.raises((TypeError, ValueError, OverflowError, MemoryError)):
        jax.block_until_ready(IMPOSSIBLE[name](n))


@pytest.mark.parametrize(
    "make", [jnp.array, jnp.asarray, lambda x: jnp.asarray(x, x.dtype), lambda x: jnp.array([x, x])]
)
def test_an_array_does_not_change_with_the_array_that_it_was_made_of(make):
    memory = np.ones(64 + 16, np.float32)
    start = (-memory.ctypes.data // 4) % 16  # XLA can share memory that is aligned to 64 bytes
    x = memory[start : start + 64]
    made = jax.block_until_ready(make(x))
    x[:] = 7
    assert (np.asarray(made) == 1).all()


def test_windows_beyond_the_array_end():
    x = np.float32([1, 2, 3, 4])
    reduce = lambda size: lax.reduce_window(x, 0.0, lax.add, (size,), (1,), "SAME")
    np.testing.assert_array_equal(reduce(2**40), [10] * 4)
    for size in range(1, 12):  # against the definition
        low = (size - 1) // 2
        padded = np.pad(x, (low, size - 1 - low))
        np.testing.assert_allclose(reduce(size), [padded[i : i + size].sum() for i in range(4)])
    for config in ((5, 2, (3, 1)), (7, 3, (6, 5)), (3, 1, (9, 0)), (4, 2, (0, 9)), (6, 5, (4, 4))):
        size, stride, pads = config
        padded = np.pad(x, pads, constant_values=-np.inf)
        got = lax.reduce_window(x, -jnp.inf, lax.max, (size,), (stride,), [pads])
        np.testing.assert_array_equal(
            got, [padded[i : i + size].max() for i in range(0, len(padded) - size + 1, stride)]
        )


def test_errors_of_unsupported_arguments_name_an_alternative():
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    for f in (jnp.sin, jax.jit(lambda x: x)):
        with pytest.raises(ValueError, match="filled"):
            f(masked)
    with pytest.raises(OverflowError, match=r"argument y\['a'\]"):
        jax.jit(lambda x, y: x)(1, {"a": 2**64})
    with pytest.raises(ValueError, match="int32"):
        jax.eval_shape(lambda x: lax.top_k(x, 1), jax.ShapeDtypeStruct((2**31 + 5,), jnp.float32))


def test_nan_in_a_loop_names_the_loop():
    with jax.debug_nans(True):
        for f in (lambda x: lax.fori_loop(0, 2, lambda i, c: jnp.log(c) - 1, x), jnp.log):
            with pytest.raises(FloatingPointError, match="scan|log") as caught:
                jax.jit(f)(-1.0)
            assert type(caught.value) is FloatingPointError


def test_no_batches():
    np.testing.assert_array_equal(lax.map(lambda x: x * 2, jnp.arange(3), batch_size=0), [0, 2, 4])


def test_the_error_of_an_escaped_tracer_names_its_function():
    leaked = []
    jax.jit(lambda x: leaked.append(x))(1.0)  # the function is gone when the tracer is used
    line = test_the_error_of_an_escaped_tracer_names_its_function.__code__.co_firstlineno + 2
    with pytest.raises(jax.errors.UnexpectedTracerError, match=f"test_edges.py:{line}"):
        leaked[0] + 1


class Forwarding:
    """Forwards every attribute of its array, like the parameters of libraries of layers."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "value"), name)


def test_objects_that_forward_to_tracers_are_operands():
    x = np.float32([1, 2, 3])
    np.testing.assert_allclose(jax.vmap(lambda x, y: x + Forwarding(y))(x, x), 2 * x)
    np.testing.assert_allclose(jax.vmap(lambda y: 1.0 + jnp.where(y > 2, Forwarding(y), y))(x), 1 + x)
    np.testing.assert_allclose(
        jax.grad(lambda x: (x * jnp.sin(Forwarding(x))).sum())(x), np.sin(x) + x * np.cos(x), 1e-5
    )
    np.testing.assert_allclose(jax.jit(lambda x: jnp.arctan2(Forwarding(x), x))(x), np.full(3, np.pi / 4), 1e-6)


def test_a_type_like_another():
    like = jax.ShapeDtypeStruct.like
    assert like(jnp.ones((2, 3))) == jax.ShapeDtypeStruct((2, 3), jnp.float32, sharding=jnp.ones(1).sharding)
    assert like(1.0).weak_type and like(np.zeros(3, np.int8)).dtype == np.int8


def test_shapes_that_do_not_broadcast():
    with pytest.raises(TypeError, match="incompatible shapes"):
        jnp.ones(3) * jnp.ones(4)
    with pytest.raises(ValueError, match="incompatible shapes"):
        jnp.ones(100) * jnp.ones((100, 10))


def test_polynomials_in_columns():
    a, b = np.array([[2, 3, 1]]), np.array([[5, 7, 3], [8, 2, 6]])
    np.testing.assert_array_equal(jnp.polyadd(a, b), [[5, 7, 3], [10, 5, 7]])
    np.testing.assert_array_equal(jnp.polysub(a, b), [[-5, -7, -3], [-6, 1, -5]])


def test_a_transposed_convolution_without_space_is_a_product():
    x, k = np.ones((2, 3), "f"), np.ones((3, 4), "f")
    out = lax.conv_transpose(x, k, (), "SAME", dimension_numbers=("NC", "IO", "NC"))
    np.testing.assert_array_equal(out, x @ k)


DECOMPOSITIONS = {
    "svd": jnp.linalg.svd,
    "svdvals": jnp.linalg.svdvals,
    "qr": jnp.linalg.qr,
    "eigh": jnp.linalg.eigh,
    "eig": jnp.linalg.eig,
    "cholesky": jnp.linalg.cholesky,
    "schur": jax.scipy.linalg.schur,
    "pinv": jnp.linalg.pinv,
    "polar": jax.scipy.linalg.polar,
    "lstsq": lambda x: jnp.linalg.lstsq(x, x[:, 0])[0],
}


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_decompositions_of_matrices_that_are_not_finite_terminate(name, value):
    # The first column of this matrix sends LAPACK's divide and conquer into an endless loop.
    x = np.float32([[0, 0.72, 0.53, 0.1], [0, 0.79, 0.8, 0.3], [0, 0.57, 0.72, 0.7], [0, 0.66, 0.15, 0.2]])
    for places in (np.s_[:, 0], np.s_[0, 0], np.s_[:]):
        broken = x.copy()
        broken[places] = value
        out = jax.tree.leaves(DECOMPOSITIONS[name](broken))
        assert not all(np.isfinite(np.asarray(v)).all() for v in out)


def test_a_broken_matrix_leaves_the_others_of_its_batch():
    x = np.stack([np.eye(3, dtype=np.float32), np.full((3, 3), np.inf, np.float32)])
    for values in jnp.linalg.svd(x), jax.vmap(jnp.linalg.svd)(x):
        for v in values:
            assert np.isfinite(v[0]).all() and np.isnan(v[1]).all()


def test_operations_without_effect_return_arrays():
    x = np.ones((2, 3), np.float32)
    for same in (
        lambda x: lax.convert_element_type(x, np.float32),
        lambda x: lax.broadcast_to_rank(x, 2),
        lambda x: lax.expand_dims(x, ()),
        lambda x: lax.reshape(x, (2, 3)),
        lambda x: jnp.fft.fftshift(x, axes=()),
        lambda x: lax.squeeze(x, ()),
    ):
        assert isinstance(same(x), jax.Array) and jax.jit(lambda same=same: same(x).at[0].set(2.0))().shape == (2, 3)
    assert isinstance(lax.convert_element_type(np.float32(1), np.float32), jax.Array)
    assert jnp.fft.fftshift(0.5).shape == ()


def test_keys_are_read_and_moved_inside_shard_map():
    keys, x = jax.random.split(jax.random.key(0), 1), jnp.ones(2)
    mesh = jax.make_mesh((1,), ("i",))
    inside = lambda f, *args: jax.jit(jax.shard_map(f, mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P("i")))(*args)
    expected = jax.random.bits(keys[0], (2,))
    np.testing.assert_array_equal(inside(lambda k: jax.random.bits(k[0], (2,)), keys), expected)
    np.testing.assert_array_equal(inside(lambda x: jax.random.bits(keys[0], x.shape), x), expected)  # a constant
    halves = inside(lambda k: jax.random.split(k.reshape(()), 2), keys)
    np.testing.assert_array_equal(jax.random.key_data(halves), jax.random.key_data(jax.random.split(keys[0], 2)))


EMPTY = {
    "reduce_window": (lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "VALID"), (0, 4), (0, 3)),
    "max_pool": (lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), "SAME"), (0, 4), (0, 4)),
    "permutation": (lambda x: jax.random.permutation(jax.random.key(0), x), (0, 4), (0, 4)),
    "permutation_of_columns": (lambda x: jax.random.permutation(jax.random.key(0), x, axis=1), (4, 0), (4, 0)),
    "choice": (lambda x: jax.random.choice(jax.random.key(0), x, (0,)), (0,), (0,)),
    "diagonal": (jnp.diagonal, (0, 4), (0,)),
    "corrcoef": (jnp.corrcoef, (0, 4), (0, 0)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_functions_of_empty_arrays(name):
    function, shape, expected = EMPTY[name]
    x = jnp.zeros(shape)
    assert function(x).shape == jax.jit(function)(x).shape == jax.eval_shape(function, x).shape == expected


def test_integers_at_the_edges_are_the_same_under_numpy():
    """NaN and infinity as integers, division and remainder by zero, shifts beyond the width, without a warning."""
    floats = np.float32([np.nan, np.inf, -np.inf, 1e20, -1e20, 300, -1])
    x, y, by = np.int32([5, -5, 0, -(2**31)]), np.int32([0, 0, 0, -1]), np.int32([40, 32, -1, 31])

    def answers():
        shifts = (lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic)
        found = [lax.convert_element_type(floats, t) for t in ("int8", "uint8", "int32", "uint32", "bool")]
        found += [lax.div(x, y), lax.rem(x, y), lax.abs(x), lax.neg(x), *(f(x, by) for f in shifts)]
        found += [
            jnp.floor_divide(x, y),
            jnp.remainder(x, y),
            jnp.fmod(x, y),
            jnp.floor_divide(np.uint8(3), np.uint8(0)),
        ]
        return [np.asarray(a).tolist() for a in found]

    compiled, before = answers(), executors.active
    executors.install(numpy_executor)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert answers() == compiled
    finally:
        executors.install(before)


def test_map_in_batches_checks_the_lengths_that_it_maps():
    with pytest.raises(ValueError, match="lengths 4, 6"):
        lax.map(lambda pair: pair[0], (jnp.arange(4), jnp.arange(6)), batch_size=2)
    with pytest.raises(ValueError, match="number of steps is unknown"):
        lax.map(lambda x: x, (), batch_size=2)
    with pytest.raises(ValueError, match="no leading axis"):
        lax.map(lambda x: x, 3.0, batch_size=2)
    np.testing.assert_array_equal(lax.map(lambda x: -x, jnp.arange(5), batch_size=np.int64(2)), -np.arange(5))


def test_switch_clamps_indices_beyond_int32():
    branches = [lambda: 0, lambda: 1, lambda: 2]
    with jax.enable_x64(True):
        for dtype, index, want in (
            (np.uint32, 2**32 - 1, 2),
            (np.int64, 2**32, 2),
            (np.int64, -(2**32), 0),
            (np.uint64, 2**63, 2),
            (np.int64, 1, 1),
            (np.uint8, 255, 2),
        ):
            index = jnp.asarray(index, dtype)
            assert lax.switch(index, branches) == want == jax.jit(lambda i: lax.switch(i, branches))(index)
            with jax.disable_jit():
                assert lax.switch(index, branches) == want


def test_switch_takes_any_iterable_of_functions():
    assert lax.switch(1, (b for b in (lambda: 0, lambda: 1))) == 1
    with pytest.raises(TypeError, match="branches is a sequence of functions, got 3"):
        lax.switch(1, 3)


def test_scan_over_references_without_jit():
    def double(total, row):
        row[...] = 2 * row[...]
        return total + row[...], None

    def run():
        ref = jax.new_ref(jnp.arange(3.0))
        return lax.scan(double, 0.0, ref)[0], ref[...]

    with jax.disable_jit():
        total, rows = run()
    assert total == 6 and rows.tolist() == [0, 2, 4] == run()[1].tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex64"])
def test_associative_scan_keeps_negative_zeros(dtype):
    parts = (lambda x: (x.real, x.imag)) if dtype == "complex64" else (lambda x: (x,))
    for n in (2, 5, 8):
        for zero in (0.0, -0.0):
            x = jnp.full(n, complex(zero, zero) if dtype == "complex64" else zero, dtype)
            for reverse in (False, True):
                out = lax.associative_scan(lambda a, b: a, x, reverse=reverse)
                assert all((np.signbit(part) == np.signbit(np.float32(zero))).all() for part in parts(np.asarray(out)))


def test_the_type_of_keys_describes_an_argument():
    aval = jax.typeof(jax.random.key(0))
    assert jax.make_jaxpr(lambda key: key)(aval).in_avals == [aval]
    assert jax.eval_shape(jax.random.split, aval).shape == (2,)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "float32", "bfloat16", "complex64"])
def test_psum_of_a_constant_is_that_of_a_mapped_value(dtype):
    for n in (3, 200, 300):
        x = np.array([1, 0], dtype)
        f = lambda y, x=x: (lax.psum(x, "i"), lax.psum(y, "i"))
        constant, mapped = jax.vmap(f, axis_name="i")(jnp.broadcast_to(x, (n, 2)))
        assert constant.dtype == mapped.dtype
        np.testing.assert_array_equal(np.asarray(constant, complex), np.asarray(mapped, complex))
