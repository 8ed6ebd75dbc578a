"""Kernels for GPUs, data of GPUs, and the propagation of blocks through functions."""

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import lax, state
from bedrax import pallas as pl
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.core.jitting import jit
from bedrax.pallas import chips, fusing
from bedrax.pallas import mosaic_gpu as gpu

X = np.arange(32, dtype=np.float32).reshape(8, 4)
HOW = gpu.InterpretGPUParams()


def like(x):
    return ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype)


def test_a_kernel_copies_through_shared_memory_at_each_place_of_a_grid():
    def body(x, o, shared, barrier):
        rows = pl.ds(4 * lax.axis_index("i") + 2 * lax.axis_index("j"), 2)
        gpu.copy_gmem_to_smem(x.at[rows], shared, barrier)
        gpu.barrier_wait(barrier)
        gpu.store(shared, gpu.load(shared) * 3)
        gpu.commit_smem()
        gpu.copy_smem_to_gmem(shared, o.at[rows])
        gpu.wait_smem_to_gmem(0)

    run = gpu.kernel(
        body,
        out_type=like(X),
        scratch_types=[gpu.SMEM((2, 4), np.float32), gpu.Barrier()],
        grid=(2,),
        grid_names=("i",),
        cluster=(2,),
        cluster_names=("j",),
        interpret=HOW,
    )
    np.testing.assert_array_equal(run(X), X * 3)
    old = gpu.kernel(
        body,
        like(X),
        scratch_shapes=[gpu.SMEM((2, 4), np.float32), gpu.Barrier()],
        grid=(2,),
        grid_names=("i",),
        cluster=(2,),
        cluster_names=("j",),
    )
    with gpu.force_gpu_interpret_mode():
        np.testing.assert_array_equal(old(X), X * 3)
    with pytest.raises(NotImplementedError, match="not compiled"):
        old(X)
    with pytest.raises(ValueError, match="a name per axis"):
        gpu.kernel(body, out_type=like(X), grid=(2,))


def test_threads_share_memory_and_cannot_wait_for_later_ones():
    def body(o, shared, barrier, *, wait):
        me = lax.axis_index("t")
        shared[me] = lax.convert_element_type(me, np.float32) + 1
        gpu.barrier_arrive(barrier, predicate=me >= 0)
        if wait:
            gpu.barrier_wait(barrier)
        o[me] = gpu.sum(shared[...], keepdims=False) * gpu.barrier_test(barrier)

    def run(wait):
        memory = [gpu.SMEM((2,), np.float32), gpu.Barrier(num_arrivals=2)]
        return gpu.kernel(
            lambda o, s, b: body(o, s, b, wait=wait),
            out_type=ShapeDtypeStruct((2,), np.float32),
            scratch_types=memory,
            num_threads=2,
            thread_name="t",
            interpret=gpu.InterpretGPUParams(uninitialized_memory="zero"),
        )()

    np.testing.assert_array_equal(run(False), [0, 3])
    with pytest.raises(Exception, match="fewer have arrived"):
        np.asarray(run(True))


def test_copies_in_groups_and_a_barrier_of_one_thread():
    def body(x, o, shared, barrier):
        plain = gpu.OOBFillMode.PROMISE_IN_BOUNDS
        gpu.copy_gmem_to_smem(x, shared, oob_mode=plain)
        gpu.wait_gmem_to_smem(0)
        gpu.barrier_arrive_and_wait(barrier)
        for i in range(2):
            gpu.copy_smem_to_gmem(shared.at[i], o.at[1 - i], commit_group=False)
        gpu.commit_smem_to_gmem_group()
        gpu.wait_smem_to_gmem(0)

    memory = [gpu.SMEM((2, 4), np.float32), gpu.Barrier()]
    out = gpu.kernel(body, out_type=like(X[:2]), scratch_types=memory, interpret=HOW)(X[:2])
    np.testing.assert_array_equal(out, X[1::-1])
    with pytest.raises(NotImplementedError, match="oob_mode"):
        gpu.copy_gmem_to_smem(state.new_ref(X), state.new_ref(X), oob_mode=gpu.OOBFillMode.ZEROS)


def test_matrix_products():
    a, b = X[:4, :3], X[:3]

    def body(a, b, o, p):
        def inside(acc, more):
            gpu.wgmma(acc, a, b)
            gpu.wgmma_wait(0)
            gpu.wgmma(more, a[...], b)
            o[...] = acc[...]
            p[...] = gpu.wgmma_accumulator_load(more)

        pl.run_scoped(inside, gpu.ACC((4, 4)), gpu.WGMMAAccumulatorRef.init(jnp.ones((4, 4))))

    o, p = gpu.kernel(body, out_type=(like(X[:4]), like(X[:4])), interpret=HOW)(a, b)
    np.testing.assert_array_equal(o, a @ b)
    np.testing.assert_array_equal(p, a @ b + 1)
    np.testing.assert_array_equal(gpu.mma(np.ones((4, 4), np.float32), a, b), a @ b + 1)


def test_a_pipeline_has_a_carry():
    spec = gpu.BlockSpec((2, 4), lambda i: (i, 0))

    def body(x, o, total):
        def step(index, a, b, carry):
            b[...] = a[...] + lax.convert_element_type(index[0], np.float32)
            return carry + a[...].sum()

        total[...] = gpu.emit_pipeline(step, grid=(4,), in_specs=[spec], out_specs=[spec], init_carry=jnp.float32(0))(
            x, o
        )

    out, total = gpu.kernel(body, out_type=(like(X), ShapeDtypeStruct((), np.float32)), interpret=HOW)(X)
    np.testing.assert_array_equal(out, X + np.repeat(np.arange(4), 2)[:, None])
    assert total == X.sum()
    with pytest.raises(NotImplementedError, match="one layout"):
        gpu.BlockSpec((2,), transforms=(1,))


def test_loops_are_shared_in_turns():
    def body(o, steps):
        k = lax.axis_index("k")

        @gpu.nd_loop((2, 3), collective_axes="k")
        def _(info):
            assert isinstance(info, gpu.NDLoopInfo)
            o[info.index[0], info.index[1]] = 10 * k + info.local_index

        count = gpu.nd_loop((2, 3), collective_axes="k", init_carry=jnp.int32(0))(lambda info, carry: carry + 1)
        steps[k] = count

    out = (ShapeDtypeStruct((2, 3), np.int32), ShapeDtypeStruct((4,), np.int32))
    o, steps = gpu.kernel(body, out_type=out, grid=(4,), grid_names=("k",), interpret=HOW)()
    np.testing.assert_array_equal(o, [[0, 10, 20], [30, 1, 11]])
    np.testing.assert_array_equal(steps, [2, 2, 1, 1])


def test_planar_snake_has_the_documented_order():
    at = [tuple(map(int, gpu.planar_snake(i, (8, 8), 0, 2))) for i in range(64)]
    order = np.zeros((8, 8), int)
    for i, place in enumerate(at):
        order[place] = i
    # The table of the documentation.
    assert order[0].tolist() == [0, 2, 4, 6, 8, 10, 12, 14] and order[3].tolist() == [31, 29, 27, 25, 23, 21, 19, 17]
    assert order[4].tolist() == [32, 34, 36, 38, 40, 42, 44, 46] and order[6].tolist() == [
        62,
        60,
        58,
        56,
        54,
        52,
        50,
        48,
    ]
    for shape, minor, width in (((5, 3), 0, 2), ((3, 7), 1, 3)):
        places = {tuple(map(int, gpu.planar_snake(i, shape, minor, width))) for i in range(shape[0] * shape[1])}
        assert places == set(np.ndindex(shape))


def test_small_operations():
    for name in ("sum", "max", "min", "prod"):
        np.testing.assert_allclose(
            getattr(gpu, name)(X, axis=1, keepdims=True), getattr(np, name)(X, axis=1, keepdims=True)
        )
    np.testing.assert_array_equal(gpu.broadcasted_iota(np.int32, (2, 3), 1), [[0, 1, 2]] * 2)
    assert gpu.layout_cast(X, gpu.Layout.WGMMA) is X
    ref = state.new_ref(np.int32([6, 3]))
    for change, val in (
        (gpu.atomic_add, 1),
        (gpu.atomic_max, 5),
        (gpu.atomic_min, 6),
        (gpu.atomic_and, 6),
        (gpu.atomic_or, 1),
        (gpu.atomic_xor, 3),
    ):
        change(ref, val)
    values = np.minimum(np.maximum(np.int32([6, 3]) + 1, 5), 6)
    np.testing.assert_array_equal(ref[...], (values & 6 | 1) ^ 3)
    assert [gpu.find_swizzle(bits) for bits in (1024, 512, 256, 128)] == [128, 64, 32, 16]
    for mistake, error in (
        (lambda: gpu.find_swizzle(8), ValueError),
        (lambda: gpu.wait_gmem_to_smem(-1), ValueError),
        (lambda: gpu.set_max_registers(7, action="increase"), ValueError),
        (lambda: gpu.barrier_wait(ref), TypeError),
        (lambda: gpu.copy_gmem_to_smem(ref, ref, collective_axes="x"), NotImplementedError),
        (lambda: gpu.semaphore_signal(ref, memory_scope="cpu"), ValueError),
        (lambda: gpu.SMEM((2,), np.int32, transforms=(1,)), NotImplementedError),
    ):
        with pytest.raises(error):
            mistake()
    assert gpu.CompilerParams(max_concurrent_steps=2).lowering_semantics is gpu.LoweringSemantics.Warpgroup


def test_data_of_gpus():
    infos = {v: chips.get_gpu_info_from_version(v) for v in chips.GpuVersion}
    assert infos[chips.GpuVersion.T4] == chips.GpuInfo(
        gpu_version=chips.GpuVersion.T4, arch_name="7.5", compute_capability=75
    )
    assert infos[chips.GpuVersion.H100].compute_capability == 90 and infos[chips.GpuVersion.GB10].arch_name == "12.1"
    assert all(
        i.gpu_version is v and int(i.arch_name.replace(".", "")) == i.compute_capability for v, i in infos.items()
    )
    with pytest.raises(ValueError, match="GpuVersion"):
        chips.get_gpu_info_from_version("H100")
    if not chips.is_gpu_device():
        with pytest.raises(ValueError, match="no GPU"):
            chips.get_gpu_info()
    assert not chips.is_tpu_device() and chips.CUSTOM_CALL_TARGET_NAME.startswith("__gpu$")


@fusing.fusible
def added(x, y, out):
    value = x() + y()
    return value if out is None else out(value)


def test_a_fused_function_has_the_same_results(capsys):
    f = fusing.fuse(lambda x, n: jnp.sin(added(x * n, x)), static_argnums=1)
    np.testing.assert_allclose(f(X, 3), np.sin(X * 4), atol=1e-5)
    np.testing.assert_allclose(jit(lambda x: f(x, 3))(X), np.sin(X * 4), atol=1e-5)
    named = fusing.fuse(static_argnames="kind", debug=True)(lambda x, *, kind: added(x, x) if kind == "sum" else x)
    np.testing.assert_array_equal(named(X, kind="sum"), 2 * X)
    assert "add" in capsys.readouterr().out
    with pytest.raises(ValueError, match="fusible"):
        named(X, kind="other")


def test_fusions_have_types_and_values():
    fusion = fusing.Fusion(jnp.sin, ((like(X),), {}), like(X))
    assert (fusion.shape, fusion.dtype, fusion.in_shape[0]) == (X.shape, X.dtype, ((8, 4),))
    assert fusion.in_dtype == ((X.dtype,), {}) and fusion.type == like(X)
    np.testing.assert_array_equal(fusion(X), jnp.sin(X))
    y = jnp.asarray(X) + 1
    f, values, scalars = fusing.get_fusion_values(lambda x: {"out": x * y}, X)
    assert scalars == () and len(values) == 1
    np.testing.assert_array_equal(f((values[0] * 2,), X)["out"], X * (X + 1) * 2)
    np.testing.assert_array_equal(fusing.evaluate(lambda x: x * 2)(X), X * 2)
    with pytest.raises(ValueError, match="transposes"):
        fusing.evaluate(lambda x: x.T, allow_transpose=False)(X)
    with pytest.raises(ValueError, match="transposes"):
        fusing.evaluate(jit(lambda x: x.T), allow_transpose=False)(X)
    with pytest.raises(NotImplementedError, match="loops"):
        fusing.evaluate(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x))(X)


def test_block_specs_with_more_arguments_and_without():
    spec, whole = pl.BlockSpec((2, 4), lambda i, refs: (i + refs, 0)), pl.no_block_spec
    one, none = fusing.block_spec_with_prefetch((spec, whole), (10,))
    assert one.index_map(1) == (11, 0) and none is whole
    values, specs = fusing.filter_no_block_specs((1, 2, {"a": 3}), (spec, whole, {"a": whole}))
    assert values == (1, None, {"a": None}) and specs == (spec, None, {"a": None})
    assert fusing.make_scalar_prefetch_handler(0, 1)(("a", "b"), "c") == "b"


def test_blocks_go_through_functions_of_elements():
    spec, bias = pl.BlockSpec((2, 4), lambda i: (i, 0)), np.float32(3)
    f = lambda x, s: jnp.sin(x) * s + 1
    assert fusing.push_block_spec(f, spec, pl.no_block_spec)(X, bias) is spec
    out_spec, out = fusing.push_block_spec(f, spec, pl.no_block_spec, return_out_type=True)(X, bias)
    assert out_spec is spec and out.shape == X.shape
    kernel_fn, (x_spec, s_spec), _ = fusing.pull_block_spec(f, spec, grid_len=1)(X, bias)
    assert x_spec is spec and s_spec is pl.no_block_spec
    np.testing.assert_allclose(kernel_fn((1,), (), X[2:4], bias), np.sin(X[2:4]) * 3 + 1, rtol=1e-5)
    after = lambda values, y: (y + values[0]) * values[1]
    kernel_fn, specs, by_name, out, out_spec = fusing.push_pull_block_spec(after, spec)((X, bias), X)
    assert specs == (spec, pl.no_block_spec) and by_name == {} and out.shape == X.shape and out_spec is spec

    def kernel(x, y, o):
        o[...] = kernel_fn((pl.program_id(0),), (), (x[...], bias), y[...])

    run = pl.pallas_call(kernel, out, grid=4, in_specs=[specs[0], spec], out_specs=out_spec, interpret=True)
    np.testing.assert_array_equal(run(X, X), 6 * X)
    with pytest.raises(NotImplementedError, match="transpose"):
        fusing.push_block_spec(lambda x: x.T, spec)(X)
    with pytest.raises(NotImplementedError, match="shape|broadcast"):
        fusing.pull_block_spec(lambda x, y: x + y, spec)(X, X[0])
    other = pl.BlockSpec((4, 4), lambda i: (i, 0))
    with pytest.raises(ValueError, match="one shape and index map"):
        fusing.push_block_spec(lambda x, y: x + y, spec, other)(X, X)
    with pytest.raises(ValueError, match="grid_len"):
        fusing.pull_block_spec(f, spec, scalar_prefetch_handler=lambda *x: x)
