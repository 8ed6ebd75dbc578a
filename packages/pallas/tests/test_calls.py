"""Kernels against their results, computed with NumPy."""

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import lax, state
from bedrax import pallas as pl
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.core.avals import ShapeDtypeStruct, aval_of
from bedrax.core.jitting import jit
from bedrax.pallas import masked
from bedrax.pallas.specs import SMEM, VMEM, InterpretParams, TPUCompilerParams


def like(x):
    return ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype)


def values(*shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) + 1


def call(kernel, out, *args, **options):
    return pl.pallas_call(kernel, out, interpret=True, **options)(*args)


def copy(x, o):
    o[...] = x[...]


def test_a_call_without_a_grid_has_whole_arrays():
    x, y = values(3, 4), values(3, 4)

    def add(x, y, o):
        o[...] = x[...] + y[...]

    np.testing.assert_array_equal(call(add, like(x), x, y), x + y)

    def both(x, s, p):
        s[...] = x[...] * 2
        p[0] = x[1]

    s, p = call(both, (like(x), like(x)), x)
    np.testing.assert_array_equal(s, x * 2)
    np.testing.assert_array_equal(p[0], x[1])
    assert np.isnan(np.asarray(p)[1:]).all()
    trees = call(lambda t, o: o["a"].set(t["x"][...] + t["y"][...]), {"a": like(x)}, {"x": x, "y": y})
    np.testing.assert_array_equal(trees["a"], x + y)


@pytest.mark.parametrize(
    "shape, block", [((6,), 2), ((5,), 2), ((4, 6), (2, 3)), ((5, 7), (2, 3)), ((4, 6), (None, 3))]
)
def test_blocks_cover_an_array(shape, block):
    block = block if isinstance(block, tuple) else (block,)
    x = values(*shape)
    grid = tuple(-(-n // (b or 1)) for n, b in zip(shape, block))
    spec = pl.BlockSpec(block, lambda *ids: ids)
    seen = []

    def kernel(x, o):
        seen.append(x.shape)
        o[...] = x[...] * 10

    out = call(kernel, like(x), x, grid=grid, in_specs=[spec], out_specs=spec)
    np.testing.assert_array_equal(out, x * 10)
    assert set(seen) == {tuple(b for b in block if b is not None)}


def test_index_maps_choose_blocks():
    x = values(8)
    swapped = call(
        copy,
        like(x),
        x,
        grid=4,
        in_specs=[pl.BlockSpec((2,), lambda i: 3 - i)],
        out_specs=pl.BlockSpec((2,), lambda i: i),
    )
    np.testing.assert_array_equal(swapped, x.reshape(4, 2)[::-1].ravel())
    windows = call(
        copy,
        ShapeDtypeStruct((3, 4), np.float32),
        x[:5],
        grid=(3,),
        in_specs=[pl.BlockSpec((pl.Element(4, (1, 0)),), lambda i: (i,))],
        out_specs=pl.BlockSpec((None, 4), lambda i: (i, 0)),
    )
    expected = np.stack([np.concatenate([[np.nan], x[:5]])[i : i + 4] for i in range(3)])
    np.testing.assert_array_equal(windows, expected)


def test_runs_are_in_order_and_have_program_ids():
    def kernel(o):
        i, j = pl.program_id(0), pl.program_id(1)
        o[i, j] = i * pl.num_programs(1) + j

    np.testing.assert_array_equal(call(kernel, ShapeDtypeStruct((2, 3), np.int32), grid=(2, 3)), values(2, 3) - 1)

    def total(x, o):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o[...] = jnp.zeros_like(o[...])

        o[...] += x[...]

    x = values(6)
    spec = pl.BlockSpec((1,), lambda i: (i,))
    whole = pl.BlockSpec((1,), lambda i: (0,))
    out = call(total, ShapeDtypeStruct((1,), np.float32), x, grid=(6,), in_specs=[spec], out_specs=whole)
    assert out[0] == x.sum()


def test_scratch_memory_is_shared_by_the_runs():
    def kernel(x, o, acc, *, count):
        @pl.when(pl.program_id(0) == 0)
        def _():
            acc[...] = jnp.zeros((2,))
            count[0] = 0

        acc[...] += x[...]
        count[0] += 1
        o[...] = acc[...] / count[0]

    x = values(6)
    spec = pl.BlockSpec((2,), lambda i: (i,))
    shapes = {"acc": VMEM((2,), np.float32), "count": SMEM((1,), np.int32)}
    out = call(kernel, like(x), x, grid=3, in_specs=[spec], out_specs=spec, scratch_shapes=shapes)
    rows = x.reshape(3, 2)
    np.testing.assert_allclose(out, np.concatenate([rows[: i + 1].mean(0) for i in range(3)]))


def test_prefetched_scalars_are_seen_by_index_maps():
    x = values(4, 3)
    order = np.array([2, 0, 3], np.int32)

    def kernel(order, x, o):
        o[...] = x[...] + order[pl.program_id(0)]

    spec = pl.PrefetchScalarGridSpec(
        1, (3,), [pl.BlockSpec((1, 3), lambda i, order: (order[i], 0))], pl.BlockSpec((1, 3), lambda i, order: (i, 0))
    )
    out = call(kernel, ShapeDtypeStruct((3, 3), np.float32), order, x, grid_spec=spec)
    np.testing.assert_array_equal(out, x[order] + order[:, None])


def test_an_argument_and_a_result_may_be_one_array():
    x = values(4)
    out = call(lambda x, o: o.set(x[0] * 10, 0), like(x), x, input_output_aliases={0: 0})
    np.testing.assert_array_equal(out, [10, 2, 3, 4])
    np.testing.assert_array_equal(x, values(4))
    out = call(lambda x, o: None, ShapeDtypeStruct((), np.int32), jnp.asarray(1), input_output_aliases={0: 0})
    assert aval_of(jnp.asarray(1)).weak_type and not aval_of(out).weak_type  # the result has the type of `out_shape`


def test_slices_with_computed_starts_and_loops():
    x = values(8)

    def kernel(x, o):
        @pl.loop(0, 8, step=2)
        def _(i):
            o[pl.ds(i, 2)] = x[pl.ds(6 - i, 2)]

    expected = x.reshape(4, 2)[::-1].ravel()
    np.testing.assert_array_equal(call(kernel, like(x), x), expected)

    def strided(x, o):
        o[pl.ds(0, 4)] = x[pl.ds(1, 4, stride=2)]
        o[pl.ds(4, 4)] = x[pl.ds(4)]
        total = pl.loop(0, 3, init_carry=jnp.float32(0))(lambda i, c: c + x[i])
        o[7] = total

    out = call(strided, like(x), x)
    np.testing.assert_array_equal(out, [*x[1::2], *x[:3], x[:3].sum()])


def test_run_scoped_allocates_memory():
    def kernel(x, o):
        def body(tmp):
            tmp[...] = x[...] * 2
            return tmp[0]

        o[...] = jnp.full((3,), pl.run_scoped(body, VMEM((3,), np.float32)))

        @pl.with_scoped(VMEM((), np.float32))
        def more(k, tmp):
            tmp[...] = x[k]
            o[k] = tmp[...]

        more(2)

    np.testing.assert_array_equal(call(kernel, ShapeDtypeStruct((3,), np.float32), values(3)), [2, 2, 3])
    np.testing.assert_array_equal(pl.run_state(lambda r: r.set(5.0, 0))(jnp.zeros(2)), [5, 0])


def test_transformations():
    def kernel(x, y, o):
        o[...] = lax.sin(x[...]) * y[...]

    spec = pl.BlockSpec((2,), lambda i: (i,))
    f = pl.pallas_call(
        kernel,
        ShapeDtypeStruct((4,), np.float32),
        grid=2,
        in_specs=[spec, spec],
        out_specs=spec,
        interpret=InterpretParams(),
        compiler_params=TPUCompilerParams(dimension_semantics=("parallel",)),
    )
    x, y = values(4), values(4) / 7
    expected = np.sin(x) * y
    np.testing.assert_allclose(jit(f)(x, y), expected, rtol=1e-5)
    np.testing.assert_allclose(grad(lambda x: jnp.sum(f(x, y)))(jnp.asarray(x)), np.cos(x) * y, rtol=1e-5)
    xs = np.stack([x, 2 * x])
    np.testing.assert_allclose(vmap(f, (0, None))(xs, y), np.sin(xs) * y, rtol=1e-5)


def test_masks_and_clamped_indices():
    x = values(5)

    def kernel(x, o, total):
        rows = pl.program_id(0) * 2 + jnp.arange(2)
        safe = jnp.minimum(rows, 4)  # the last one twice, once under the mask
        loaded = masked.load(x.at[safe], mask=rows < 5, other=100.0)
        masked.store(o.at[safe], loaded * 10, mask=rows < 5)
        masked.atomic_add(total, (jnp.zeros(2, np.int32),), loaded, mask=rows < 5)

    out, total = call(
        lambda x, z, o, total: kernel(x, o, total),
        (like(x), ShapeDtypeStruct((1,), np.float32)),
        x,
        np.zeros(1, np.float32),
        grid=3,
        input_output_aliases={1: 1},
    )
    np.testing.assert_array_equal(out, x * 10)
    assert total[0] == x.sum()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "int8", "uint8", "int32", "float32", "bool"])
def test_the_sums_of_products_of_narrow_elements_are_wide(dtype):
    a, b = jnp.full((2, 64), 100, dtype), jnp.full((64, 2), 100, dtype)
    out = masked.dot(a, b)
    if dtype == "bool":
        assert out.dtype == np.bool_ and bool(out.all())
        return
    element = float(a[0, 0].astype(np.float32))  # rounded to the dtype
    np.testing.assert_array_equal(out, np.full((2, 2), 64 * element**2))
    assert out.dtype == (np.int32 if "int" in dtype else np.float32)


@pytest.mark.parametrize(("dtype", "size"), [(np.int8, 200), (np.uint8, 256), ("int4", 16)])
def test_a_mask_holds_for_indices_of_narrow_dtypes(dtype, size):
    ref = state.new_ref(jnp.zeros(size, np.int32))
    masked.store(ref.at[jnp.array([1, 2, 3, 4], dtype)], 1, mask=jnp.array([True, False, True, False]))
    np.testing.assert_array_equal(np.nonzero(ref[...])[0], [1, 3])


def test_atomic_operations_return_the_former_values():
    ref = state.new_ref(jnp.int32([5, 6, 7]))
    twice = (jnp.int32([1, 1]),)
    np.testing.assert_array_equal(masked.atomic_max(ref, twice, jnp.int32([9, 8])), [6, 6])
    np.testing.assert_array_equal(masked.atomic_min(ref, twice, jnp.int32([3, 4])), [9, 9])
    assert (
        masked.atomic_xchg(ref, 0, 12) == 5 and masked.atomic_and(ref, 0, 6) == 12 and masked.atomic_or(ref, 0, 3) == 4
    )
    assert masked.atomic_xor(ref, 0, 2) == 7 and masked.atomic_add(ref, 2, 1) == 7
    np.testing.assert_array_equal(ref[...], [5, 3, 8])
    assert masked.atomic_cas(ref.at[0], 5, 1) == 5 and masked.atomic_cas(ref.at[0], 5, 2) == 1 and ref[0] == 1
    masked.store(ref.at[1:], 4, mask=jnp.array([False, True]))
    np.testing.assert_array_equal(ref[...], [1, 3, 4])
    a = values(2, 3)
    np.testing.assert_allclose(masked.dot(a, a, trans_b=True), a @ a.T)


ATOMIC = {
    "add": (masked.atomic_add, np.add),
    "max": (masked.atomic_max, np.maximum),
    "min": (masked.atomic_min, np.minimum),
    "and": (masked.atomic_and, np.bitwise_and),
    "or": (masked.atomic_or, np.bitwise_or),
    "xor": (masked.atomic_xor, np.bitwise_xor),
}


@pytest.mark.parametrize("name", ATOMIC)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_atomic_operations_at_a_repeated_index_apply_twice(name, dtype):
    operation, ufunc = ATOMIC[name]
    start = np.array([[12, 7, 9], [2**31 - 1, 6, 1]]).astype(dtype)
    places, val = np.array([1, 0, 1, 7, 1]), np.array([[10], [3], [6], [1], [5]]).astype(dtype)  # 7: nowhere
    for mask in (None, np.array([True, False, True, False, False])):
        for viewed in (False, True):
            expected = start.copy()
            keep = slice(None) if mask is None else mask
            inside = places[keep] < 2
            ufunc.at(expected, places[keep][inside], np.broadcast_to(val, (5, 3))[keep][inside])
            ref = state.new_ref(jnp.asarray(start))
            given = None if mask is None else mask[:, None]
            target, idx = (ref.at[jnp.asarray(places)], None) if viewed else (ref, (jnp.asarray(places),))
            old = operation(target, idx, val, mask=given)
            np.testing.assert_array_equal(old, start[np.minimum(places, 1)])
            np.testing.assert_array_equal(ref[...], expected)


def test_options_of_compilers_are_of_the_common_class():
    options = TPUCompilerParams(vmem_limit_bytes=5), masked.CompilerParams(num_warps=4)
    assert all(isinstance(o, pl.CompilerParams) for o in options) and options[0].vmem_limit_bytes == 5
    assert options[1] == masked.CompilerParams(num_warps=4) != masked.CompilerParams(num_warps=8)
    assert repr(options[1]) == "CompilerParams(num_warps=4, num_stages=None)" and hash(options[1]) == hash(
        masked.CompilerParams(4)
    )
    with pytest.raises(TypeError, match="warps"):
        masked.CompilerParams(warps=4)


def test_small_arithmetic():
    assert [pl.cdiv(a, 3) for a in (0, 1, 3, 4)] == [0, 1, 1, 2] and jit(pl.cdiv)(7, 2) == 4
    for a in (-7, -6, -1, 0, 7):  # arrays as Python's integers
        assert pl.cdiv(jnp.int32(a), 3) == jit(pl.cdiv)(a, 3) == pl.cdiv(a, 3) and pl.cdiv(a, jnp.int32(3)) == pl.cdiv(
            a, 3
        )
    assert pl.cdiv(jnp.uint8(7), 2) == 4 and pl.cdiv(jnp.uint8(7), 2).dtype == np.uint8
    assert pl.cdiv(jnp.int32(2**31 - 1), 2) == jit(pl.cdiv)(2**31 - 1, 2) == 2**30 and pl.cdiv(jnp.uint8(250), 16) == 16
    assert pl.cdiv(np.uint8(250), np.uint8(16)) == 16 and pl.align_to(np.int8(100), np.int8(64)) == 128
    assert pl.next_power_of_2(np.int32(9)) == 16
    assert pl.align_to(jnp.uint8(5), 4) == 8 and pl.run_scoped(lambda r: r[...], VMEM((), "int4")) == -8
    assert pl.align_to(5, 4) == 8 and [pl.next_power_of_2(n) for n in (0, 1, 5, 8)] == [1, 1, 8, 8]
    assert pl.strides_from_shape((2, 3, 4)) == (12, 4, 1)
    np.testing.assert_array_equal(pl.reciprocal(jnp.float32([2, 4])), [0.5, 0.25])
    assert pl.broadcast_to(jnp.ones((1, 3)), (2, 2, 3)).shape == (2, 2, 3)
    assert pl.empty((2,), np.int8).dtype == np.int8 and pl.empty_ref_like(VMEM((2,), np.int8)).shape == (2,)


WRONG = {
    "not interpreted": (lambda x: pl.pallas_call(copy, like(x))(x), NotImplementedError, "interpret=True"),
    "no grid": (lambda x: pl.program_id(0), ValueError, "needs a kernel around it"),
    "no such axis": (lambda x: call(lambda x, o: pl.program_id(1), like(x), x, grid=2), ValueError, "no axis 1"),
    "rank of a block": (
        lambda x: call(copy, like(x), x, in_specs=[pl.BlockSpec((1, 2), lambda: (0, 0))]), ValueError, "2 axes",
    ),
    "an index map's result": (
        lambda x: call(copy, like(x), x, in_specs=[pl.BlockSpec((4,), lambda: (0, 0))]), ValueError, "one index per axis",
    ),
    "specs of another structure": (
        lambda x: call(copy, like(x), x, in_specs=[pl.BlockSpec(), pl.BlockSpec()]), ValueError, "in_specs",
    ),
    "aliases of other types": (
        lambda x: call(copy, ShapeDtypeStruct((4,), np.int32), x, input_output_aliases={0: 0}), ValueError, "one array",
    ),
    "aliases of nothing": (lambda x: call(copy, like(x), x, input_output_aliases={3: 0}), ValueError, "there are 1"),
    "a value of another shape": (lambda x: call(lambda x, o: o.set(x[:2]), like(x), x), ValueError, "shape"),
    "a spec and its parts": (
        lambda x: call(copy, like(x), x, grid_spec=pl.GridSpec(), grid=(2,)), ValueError, "grid_spec",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_errors(what):
    use, error, words = WRONG[what]
    with pytest.raises(error, match=words):
        use(values(4))


NARROW = [
    (np.uint8(0), np.uint8(250), 16, 16),
    (np.int8(-100), np.int8(100), 1, 200),
    (np.uint32(5), np.uint32(2), 1, 0),
    (np.uint32(2), np.uint32(5), 1, 3),
]


@pytest.mark.parametrize("lower, upper, step, count", NARROW)
@pytest.mark.parametrize("traced", [False, True])
def test_a_loop_counts_with_bounds_of_any_dtype(lower, upper, step, count, traced):
    run = lambda a, b: pl.loop(a, b, init_carry=(0, 0), step=step)(lambda i, c: (c[0] + 1, i))
    found, last = jit(run)(lower, upper) if traced else run(lower, upper)
    assert int(found) == count
    assert int(last) == (int(lower) + step * (count - 1) if count else 0)


def test_lengths_of_a_narrow_dtype_are_numbers():
    one = pl.BlockSpec((np.int8(1), pl.Blocked(np.int8(1))), lambda i, j: (i, j))
    grid = (np.int8(16), np.int8(16))
    out = ShapeDtypeStruct((16, 16), np.int32)
    call = pl.pallas_call(increment, out, grid=grid, in_specs=[one], out_specs=one, interpret=True)
    assert int(np.sum(call(np.zeros((16, 16), np.int32)))) == 256


def increment(x, out):
    out[...] = x[...] + np.int32(1)


LENGTHS = {
    "the size of an axis of a grid": lambda: pl.pallas_call(increment, ShapeDtypeStruct((4,), np.int32), grid=(2.0,)),
    "the length of a block": lambda: pl.pallas_call(
        increment,
        ShapeDtypeStruct((4,), np.int32),
        grid=(2,),
        in_specs=[pl.BlockSpec((2.5,), lambda i: (i,))],
        interpret=True,
    )(np.zeros(4, np.int32)),
    "ds: the size of a slice": lambda: pl.ds(0, 2.7),
}


@pytest.mark.parametrize("what", LENGTHS)
def test_a_length_that_is_no_integer_is_named(what):
    with pytest.raises(TypeError, match=f"{what} must be an integer, got 2"):
        LENGTHS[what]()
