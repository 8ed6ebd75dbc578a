"""Cores, semaphores, copies, pipelines, matrix units of TPUs: interpreted, against NumPy."""

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import lax, state
from bedrax import pallas as pl
from bedrax.autodiff import grad
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.core.jitting import jit
from bedrax.pallas import copies, cores, matrix_units, modes, pipelines
from bedrax.pallas.specs import (
    ACC,
    ANY,
    HBM,
    INTERPRETER_OPTIONS,
    SMEM,
    VMEM,
    DeviceIdType,
    GridDimensionSemantics,
    InterpretGPUParams,
    InterpretParams,
    SemaphoreType,
    TPUCompilerParams,
)

X = np.arange(48, dtype=np.float32).reshape(8, 6) + 1


def like(x):
    return ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype)


def call(kernel, out, *args, **options):
    return pl.pallas_call(kernel, out, interpret=True, **options)(*args)


def test_a_copy_is_made_when_it_is_started_and_waits_for_its_semaphore():
    def kernel(x, o, count):
        def inside(sems, buffer):
            copy = copies.make_async_copy(x, buffer, sems.at[0], src_sem=sems.at[1])
            copy.start()
            count[0] = copies.semaphore_read(sems.at[0])
            copy.wait()
            count[1] = copies.semaphore_read(sems.at[0])
            count[2] = copies.semaphore_read(sems.at[1])
            copies.async_copy(buffer.at[:4], o.at[4:], sems.at[0]).wait_write()
            copies.sync_copy(buffer.at[:4], o.at[:4])
            copies.sync_copy(buffer.at[4:], o.at[:4], add=True)

        pl.run_scoped(inside, SemaphoreType.DMA((2,)), VMEM(X.shape, X.dtype))

    out, count = call(kernel, (like(X), ShapeDtypeStruct((3,), np.int32)), X)
    np.testing.assert_array_equal(out, np.concatenate([X[:4] + X[4:], X[:4]]))
    np.testing.assert_array_equal(count, [X.nbytes, 0, 0])


def test_wrong_copies_and_waits_are_refused():
    def broken(x, o):
        copies.make_async_copy(x, o)

    with pytest.raises(ValueError, match="one shape and dtype"):
        call(broken, ShapeDtypeStruct((8, 5), np.float32), X)
    for mistake, error, match in (
        (lambda c: c.wait(), ValueError, "no dst_sem"),
        (lambda c: c.wait_read(), ValueError, "no src_sem"),
        (lambda c: c.wait_send(), ValueError, "another device"),
        (lambda c: c.start(-1), ValueError, "0 or more"),
    ):
        with pytest.raises(error, match=match):
            call(lambda x, o: mistake(copies.make_async_copy(x, o)), like(X), X)  # noqa: B023


def test_a_wait_without_a_signal_is_an_error():
    def kernel(o, *, sem, early):
        copies.semaphore_signal(sem, 3)
        copies.semaphore_wait(sem, 4 if early else 2)
        copies.semaphore_wait(sem, decrement=False)
        o[...] = copies.semaphore_read(sem)

    run = lambda early: call(
        lambda o, s: kernel(o, sem=s, early=early),
        ShapeDtypeStruct((), np.int32),
        scratch_shapes=[SemaphoreType.REGULAR],
    )
    assert run(False) == 1
    with pytest.raises(Exception, match="smaller value"):
        np.asarray(run(True))
    with pytest.raises(TypeError, match="a semaphore is needed"):
        call(lambda x, o: copies.semaphore_signal(x), like(X), X)
    for options in (dict(device_id=1), dict(core_index=0), dict(device_id_type=DeviceIdType.MESH)):
        with pytest.raises(NotImplementedError, match="ppermute"):
            call(lambda o: copies.semaphore_signal(o, **options), ShapeDtypeStruct((), np.int32))  # noqa: B023
    with pytest.raises(NotImplementedError, match="another device"):
        copies.get_barrier_semaphore("tag")


def test_promises_about_references():
    np.testing.assert_array_equal(
        call(lambda x, o: o.set(copies.annotate(x, no_store=True)[...] * 2), like(X), X), X * 2
    )
    for promises in ({}, dict(no_store=True, no_hazard=True)):
        with pytest.raises(ValueError, match="annotate"):
            copies.annotate(state.new_ref(X), **promises)
    np.testing.assert_array_equal(copies.with_memory_space_constraint(X, VMEM), X)
    with pytest.raises(TypeError, match="member of MemorySpace, got 'vmem'"):
        copies.with_memory_space_constraint(X, "vmem")
    copies.touch(state.new_ref(X))
    with pytest.raises(TypeError):
        copies.touch(X)


def test_memory_spaces_of_references():
    def kernel(x, o):
        o[0], o[1] = (copies.has_memory_space(x, space) for space in (HBM, VMEM))

    spec = pl.BlockSpec(memory_space=ANY)
    np.testing.assert_array_equal(call(kernel, ShapeDtypeStruct((2,), np.bool_), X, in_specs=[spec]), [True, False])
    with pytest.raises(ValueError, match="pl.ANY"):
        call(kernel, ShapeDtypeStruct((2,), np.bool_), X, in_specs=[pl.BlockSpec(memory_space=VMEM)])


@pytest.mark.parametrize("count", [1, 2, 4])
def test_cores_have_the_size_of_their_axis_and_share_arguments(count):
    mesh = cores.TensorCoreMesh(axis_name="core", num_cores=count)
    seen = []

    @jit
    def number():  # what is compiled for one core is not what another calls
        return lax.axis_index("core")

    def body(x, o, total, scratch):
        seen.append(lax.axis_size("core"))
        i, rows = number(), 8 // count
        scratch[...] = x[pl.ds(i * rows, rows)] * 2
        o[pl.ds(i * rows, rows)] = scratch[...] + i

        @cores.run_on_first_core("core")
        def _():
            total[...] = x[...].sum()

    out_type = (like(X), ShapeDtypeStruct((), np.float32))
    for _ in range(2):
        run = pl.kernel(body, out_type, mesh=mesh, scratch_types=[VMEM((8 // count, 6), X.dtype)], interpret=True)
        out, total = run(X)
        np.testing.assert_array_equal(out, X * 2 + np.repeat(np.arange(count), 8 // count)[:, None])
        assert total == X.sum() and seen[-1] == count
    np.testing.assert_array_equal(grad(lambda x: run(x)[0].sum())(X), np.full_like(X, 2))


def test_kernels_of_several_bodies_and_references_as_arguments():
    mesh = cores.TensorCoreMesh(axis_name="core", num_cores=2)
    ref = state.new_ref(X)

    def first(r, o):
        r[lax.axis_index("core")] = jnp.zeros(6)

    def second(r, o):
        o[lax.axis_index("core")] = r[2].sum()

    out = pl.kernel([first, second], ShapeDtypeStruct((2,), np.float32), mesh=[mesh, mesh], interpret=True)(ref)
    np.testing.assert_array_equal(out, [X[2].sum()] * 2)
    np.testing.assert_array_equal(ref[...], np.concatenate([np.zeros((2, 6)), X[2:]]))
    decorated = pl.kernel(mesh=mesh, out_type=like(X), interpret=True)(lambda x, o: o.set(x[...]))
    np.testing.assert_array_equal(decorated(X), X)
    with pytest.raises(ValueError, match="one mesh per body"):
        pl.kernel([first], like(X), mesh=[mesh, mesh])
    with pytest.raises(NotImplementedError, match="not compiled"):
        pl.kernel(first, like(X), mesh=mesh)(X)
    with pytest.raises(NotImplementedError, match="one after the other"):
        pl.kernel(
            lambda o, s: cores.core_barrier(s, core_axis_name="core"),
            like(X),
            mesh=mesh,
            scratch_types=[SemaphoreType.BARRIER],
            interpret=True,
        )()


def test_a_core_map_writes_to_references_around_it():
    ref = state.new_ref(np.zeros(3, np.float32))

    @pl.core_map(cores.create_tensorcore_mesh("core", num_cores=3), interpret=True)
    def _():
        ref[lax.axis_index("core")] = lax.convert_element_type(lax.axis_index("core") * 10, np.float32)

    np.testing.assert_array_equal(ref[...], [0, 10, 20])
    with pytest.raises(NotImplementedError, match="devices"):
        cores.create_tensorcore_mesh("core", devices=[0])


@pytest.mark.parametrize("rows, block", [(8, 2), (8, 3), (5, 4)])
def test_a_pipeline_runs_its_body_on_blocks(rows, block):
    x = X[:rows]
    spec = pl.BlockSpec((block, 6), lambda i: (i, 0))
    grid = (-(-rows // block),)

    def kernel(x, o, sums):
        def body(step, a, b, factor):
            assert isinstance(step, pipelines.PipelineStep)
            assert a.shape == (block, 6)
            b[...] = a[...] * factor + pl.program_id(0)
            sums[step.index[0]] = step.local_index * 10

        pipelines.emit_pipeline(body, grid=grid, in_specs=[spec], out_specs=[spec], _explicit_indices=True)(
            x, o, scratches=[3]
        )

    out, sums = call(kernel, (like(x), ShapeDtypeStruct(grid, np.int32)), x)
    np.testing.assert_array_equal(out, x * 3 + (np.arange(rows) // block)[:, None])
    np.testing.assert_array_equal(sums, np.arange(grid[0]) * 10)


@pytest.mark.parametrize("length, count", [(8, 2), (7, 3), (2, 3)])
def test_cores_share_the_steps_of_a_pipeline(length, count):
    x, mesh = np.arange(length, dtype=np.float32), cores.TensorCoreMesh(axis_name="core", num_cores=count)
    spec = pl.BlockSpec((1,), lambda i, j: (i,))

    def run(semantics):
        def body(x, o):
            def step(a, b):
                b[...] = a[...] + 100 * lax.axis_index("core").astype(np.float32)

            pipelines.emit_pipeline(
                step,
                grid=(length, 1),
                in_specs=[spec],
                out_specs=[spec],
                core_axis_name="core",
                dimension_semantics=semantics,
            )(x, o)

        return pl.kernel(body, like(x), mesh=mesh, interpret=True)(x)

    owners = np.concatenate([np.full(len(part), i) for i, part in enumerate(np.array_split(x, count))])
    np.testing.assert_array_equal(run(("parallel", "arbitrary")), x + 100 * owners)
    with pytest.raises(ValueError, match="calls parallel"):
        run(None)
    np.testing.assert_array_equal(run((GridDimensionSemantics.PARALLEL, "arbitrary")), x + 100 * owners)
    with pytest.raises(ValueError, match="entry per axis"):
        run(("parallel",))


def test_runs_of_a_grid_share_the_steps_of_a_pipeline():
    x, spec = np.arange(6, dtype=np.float32), pl.BlockSpec((1,), lambda i: (i,))

    def kernel(x, o):
        mine = pl.program_id(0)

        def step(a, b):
            b[...] = a[...] + 10 * mine

        pipelines.emit_pipeline(
            step, grid=(6,), in_specs=[spec], out_specs=[spec], core_axis=0, dimension_semantics=("parallel",)
        )(x, o)

    np.testing.assert_array_equal(call(kernel, like(x), x, grid=(2,)), x + 10 * (np.arange(6) // 3))


def test_prefetched_blocks_are_those_of_before_the_pipeline():
    spec = pl.BlockSpec((2, 6), lambda i: (i, 0), pipeline_mode=pl.Buffered(3, prefetched_count=2))
    out = pl.BlockSpec((2, 6), lambda i: (i, 0))
    mesh = cores.TensorCoreMesh(axis_name="core")

    def kernel(x, o):
        run, prefetch = pipelines.emit_pipeline_with_async_prefetch(
            lambda a, b: b.set(a[...] + 1), grid=(4,), in_specs=[spec], out_specs=[out], mesh=mesh
        )
        there = prefetch(x)
        assert [b.prefetched_count for b in there] == [2] and there[0].is_input
        x[...] = jnp.zeros_like(x[...])
        run(x, o, allocations=there)

    np.testing.assert_array_equal(call(kernel, like(X), X), np.concatenate([X[:4] + 1, np.ones((4, 6))]))

    def allocated(x, o):
        run, make = pipelines.emit_pipeline_with_allocations(
            lambda a, b: b.set(a[...] + 1), grid=(4,), in_specs=[out], out_specs=[out]
        )
        made = make(x, o)
        assert [b.buffer_type for b in made] == [pipelines.BufferType.INPUT, pipelines.BufferType.OUTPUT]
        pl.run_scoped(lambda buffers: run(x, o, allocations=buffers), made)
        with pytest.raises(NotImplementedError, match="cycle"):
            run(x, o, schedule="other")
        with pytest.raises(ValueError, match="as many references"):
            run(x)

    np.testing.assert_array_equal(call(allocated, like(X), X), X + 1)


def test_buffers_are_counted():
    both = pipelines.BufferedRef.input_output(pl.BlockSpec(), np.float32, (3, 2))
    assert both.buffer_count == 4 and both.is_input and both.is_output and both.is_input_output
    assert pipelines.BufferedRef.output(pl.BlockSpec(), np.float32).out_buffer_count == 2
    assert both.with_spec(pl.BlockSpec((2,))).spec.block_shape == (2,) and both.with_window_ref(1).window_ref == 1
    for options in (dict(buffer_count=0), dict(buffer_count=(1, 2, 3)), dict(buffer_count=2, prefetched_count=3)):
        with pytest.raises(ValueError, match="Buffered"):
            pl.Buffered(**options)


def test_blocks_of_chosen_positions_are_refused():
    with pytest.raises(NotImplementedError, match="gather before the kernel"):
        call(lambda x, o: None, like(X), X, in_specs=[pl.BlockSpec((pl.Indirect(2), 6), lambda i: (i, 0))])


def test_matrix_units_multiply_staged_weights():
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((4, 3), (3, 5), (5, 3)))

    def kernel(a, b, c, o, p):
        def inside(acc):
            matrix_units.matmul_push_rhs(b[...], 0, 1)
            matrix_units.matmul_push_rhs(c[...], 1, 1, transpose=True)
            matrix_units.matmul_acc_lhs(acc, a[...], 0)
            matrix_units.matmul_acc_lhs(acc, a[...])  # the weights stay
            matrix_units.matmul_acc_lhs(acc.at[:2], a[:2], 1)
            o[...] = matrix_units.matmul_pop(acc)
            p[0] = matrix_units.matmul_pop(acc)
            matrix_units.matmul_lhs_fifo(a[...], 1)
            p[1] = matrix_units.matmul_pop_fifo((4, 5), np.float32, 1)
            with pytest.raises(ValueError, match="no result"):
                matrix_units.matmul_pop_fifo((4, 5), np.float32, 1)
            with pytest.raises(ValueError, match="holds nothing"):
                matrix_units.matmul_acc_lhs(acc, a[...], 0)
            with pytest.raises(TypeError, match="accumulators"):
                matrix_units.matmul_pop(a)

        pl.run_scoped(inside, ACC(1)((4, 5), np.float32))

    o, p = call(kernel, (ShapeDtypeStruct((4, 5), np.float32), ShapeDtypeStruct((2, 4, 5), np.float32)), a, b, c)
    expected = 2 * a @ b
    expected[:2] += (a @ c.T)[:2]
    np.testing.assert_array_equal(o, expected)
    np.testing.assert_array_equal(p, [np.zeros((4, 5)), a @ c.T])


@pytest.mark.parametrize("force", [modes.force_tpu_interpret_mode, modes.force_gpu_interpret_mode])
def test_an_interpret_mode_interprets_every_kernel(force):
    run = pl.pallas_call(lambda x, o: o.set(x[...] * 2), like(X))
    with force():
        np.testing.assert_array_equal(run(X), X * 2)
    with pytest.raises(NotImplementedError):
        run(X)
    for setter in (modes.set_tpu_interpret_mode, modes.set_gpu_interpret_mode):
        setter()
        try:
            np.testing.assert_array_equal(run(X), X * 2)
        finally:
            setter(None)
        modes.reset_tpu_interpret_mode_state()
        with pytest.raises(NotImplementedError):
            run(X)


def test_options_of_interpreters_act_or_are_refused():
    run = lambda how: pl.pallas_call(lambda o: None, like(X), interpret=how)()
    assert np.isnan(np.asarray(run(InterpretParams()))).all()
    np.testing.assert_array_equal(run(InterpretParams(uninitialized_memory="zero")), np.zeros_like(X))
    assert InterpretParams(on_race="warn").on_race == "warn" and InterpretGPUParams().inline_mgpu == "error"
    assert InterpretParams() == InterpretParams() != InterpretParams(on_race="warn")
    for name in INTERPRETER_OPTIONS:
        with pytest.raises(NotImplementedError, match=name):
            InterpretParams(**{name: "other"})
    with pytest.raises(TypeError, match="has no speed"):
        InterpretParams(speed=1)
    with pytest.raises(TypeError):
        InterpretGPUParams(random_seed=1)
    assert TPUCompilerParams(("parallel",), opt_level=2).dimension_semantics == ("parallel",)
    with pytest.raises(TypeError):
        TPUCompilerParams(speed=1)
    assert SMEM((2,), np.int32).shape == (2,)
