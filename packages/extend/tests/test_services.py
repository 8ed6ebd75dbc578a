"""Services of the backend, names of scopes, callbacks with buffers, classes with their own mapping."""

from dataclasses import dataclass

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import lax, pytree
from bedrax.batching import vmap
from bedrax.core.avals import aval_of
from bedrax.core.ir import eval_jaxpr
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.extend import interpreters, partial_eval, services, source_info
from bedrax.extend.buffer_callback import Buffer, ExecutionStage, buffer_callback
from bedrax.extend.metadata import set_xla_metadata
from bedrax.state import new_ref
from bedrax.xla_backend import clients
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.sharding import SingleDeviceSharding

ONES = np.ones(3, np.float32)


def test_options_of_compilation():
    options = services.get_compile_options(1, 1, env_options_overrides={"xla_cpu_enable_fast_math": "true"})
    assert options.num_partitions == 1
    assert dict(options.env_option_overrides)
    with pytest.raises(NotImplementedError, match="num_replicas"):
        services.get_compile_options(2, 1)
    with pytest.raises(ValueError, match=r"no devices \[1000\]"):
        services.get_compile_options(1, 1, device_assignment=[1000])
    with pytest.raises(ValueError, match="1000 partitions"):
        services.get_compile_options(1, 1000)
    assert services.backend_xla_version() is None or isinstance(services.backend_xla_version(), int)


def test_clearing_caches_reaches_those_of_libraries():
    cleared = []

    class Cache:
        def cache_clear(self):
            cleared.append(1)

    services.register_backend_cache(Cache(), "this test")
    services.clear_in_memory_compilation_cache()
    assert cleared == [1]
    with pytest.raises(TypeError, match="cache_clear"):
        services.register_backend_cache(3, "nothing")


def test_platforms_of_libraries():
    services.register_backend_factory("of_this_test", lambda: clients.get_backend("cpu"), priority=-1)
    with pytest.raises(NotImplementedError):
        services.register_backend_factory("other", lambda: None, experimental=True)


def test_shardings_as_bytes():
    hlo = SingleDeviceSharding(clients.devices()[0])._to_xla_hlo_sharding(1)
    data = services.get_serialized_proto_from_hlo_sharding(hlo)
    assert services.get_hlo_sharding_from_serialized_proto(data) == hlo
    split = runtime.HloSharding.iota_tile([2, 1])
    data = services.get_serialized_proto_from_hlo_sharding(split)
    assert services.get_hlo_sharding_from_serialized_proto(data).tile_assignment_dimensions() == [2, 1]


def test_scopes():
    with source_info.extend_name_stack("a"):
        with source_info.transform_name_stack("jvp"):
            assert str(source_info.current_name_stack()) == "jvp(a)"
        with source_info.reset_name_stack():
            assert str(source_info.current_name_stack()) == ""
            with source_info.user_context(None, name_stack=source_info.new_name_stack("b")):
                assert str(source_info.current().name_stack) == "b"
        assert str(source_info.current_name_stack()) == "a"
    assert source_info.new_source_info().traceback is None
    stack = source_info.new_name_stack("a") + source_info.new_name_stack("b")
    assert str(stack) == "a/b" and str(stack[1:]) == "b" and stack[0] == "a"


def test_scopes_among_hints_to_the_compiler():
    def f(x):
        with set_xla_metadata(color="red"), source_info.extend_name_stack("a"):
            assert str(source_info.current_name_stack()) == str(source_info.current().name_stack) == "a"
            with source_info.transform_name_stack("jvp"):
                assert str(source_info.current_name_stack()) == "jvp(a)"
                return lax.sin(x)

    assert 'color = "red"' in jit(f).lower(ONES).as_text()


def test_callbacks_fill_buffers():
    seen = []

    def double(context, out, x):
        seen.append((context.stage, x.writeable, out.writeable, x.shape, repr(x)))
        np.asarray(out)[...] = 2 * np.asarray(x)

    f = buffer_callback(double, ONES, vmap_method="broadcast_all")
    for run in (f, jit(f)):
        np.testing.assert_array_equal(run(ONES), 2 * ONES)
    assert seen[0] == (ExecutionStage.EXECUTE, False, True, (3,), "Buffer(float32[3], writeable=False)")
    np.testing.assert_array_equal(vmap(f)(np.stack([ONES, 2 * ONES])), [2 * ONES, 4 * ONES])
    keeps = buffer_callback(lambda context, out, x: None, ONES, has_side_effect=True, input_output_aliases={0: 0})
    np.testing.assert_array_equal(keeps(3 * ONES), 3 * ONES)
    with pytest.raises(NotImplementedError, match="command_buffer"):
        buffer_callback(double, ONES, command_buffer_compatible=True)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(Buffer(np.ones(2), False).__array__(copy=False))[...] = 0


def test_dead_code_of_programs_and_their_constants():
    a, b = np.arange(3, dtype=np.float32), np.arange(4, dtype=np.float32)
    program = make_jaxpr(lambda x, y: (lax.mul(x, a), lax.mul(y, b)))(a, b)
    smaller, constants, used = partial_eval.dce_jaxpr_consts(program, [True, False])
    assert constants == [True, False] and used == [True, False] and len(smaller.eqns) == 1
    (eqn,) = make_jaxpr(jit(lambda x, y: (lax.neg(x), lax.neg(y))))(1.0, 2.0).eqns
    needed, rest = partial_eval.dce_jaxpr_call_rule([True, False], eqn)
    assert needed == [True, False] and len(rest.outvars) == 1


def test_removal_of_dead_code_keeps_the_constants_of_a_program():
    """The constants that were returned with the program fit the smaller program, too."""
    a, b = np.arange(3, dtype=np.float32), np.arange(4, dtype=np.float32)
    types = [aval_of(a), aval_of(b)]
    program, _, consts = partial_eval.trace_to_jaxpr_dynamic(
        lambda x, y: (lax.mul(x, a), lax.neg(lax.mul(b, b))), types
    )
    smaller, used = partial_eval.dce_jaxpr(program, [False, True])
    assert used == [False, False]
    (out,) = eval_jaxpr(smaller, consts)
    np.testing.assert_array_equal(out, -b * b)
    assert partial_eval.dce_jaxpr(program, True)[1] == [True, False]
    # The constants and the arguments are one sequence of values.
    for count in range(5):
        values = [*consts, 2 * a, b]
        np.testing.assert_array_equal(eval_jaxpr(program, values[:count], *values[count:])[0], 2 * a * a)
    for wrong in ([], [*consts, a], [*consts, a, b, b]):
        with pytest.raises(TypeError, match="2 constants and 2 arguments"):
            eval_jaxpr(program, [], *wrong)


@pytest.mark.parametrize("read_after", [True, [False, True, True], [True, False, True], False])
def test_what_is_written_and_never_read_is_dead_code(read_after):
    def fun(first, second, x):
        first[...] = x
        second[...] = x * 2
        return x + 1, second[...] + 1

    refs = [new_ref(jnp.zeros(3)) for _ in range(2)]
    program = make_jaxpr(fun)(*refs, jnp.ones(3))
    for used in ([True, True], [True, False]):
        smaller, needed = partial_eval.dce_jaxpr(program, used, False, read_after)
        each = [read_after] * 3 if isinstance(read_after, bool) else read_after
        assert needed == [each[0], each[1] or used[1], True]
        kept = [eqn.invars[0] for eqn in smaller.eqns if any(e.writes for e in eqn.effects)]
        assert len(kept) == sum(needed[:2])
        assert len(smaller.outvars) == sum(used)


def test_classes_of_libraries_say_how_they_are_mapped():
    @pytree.register_pytree_node_class
    @dataclass
    class Sized:
        x: object
        size: int

        def tree_flatten(self):
            return (self.x,), self.size

        @classmethod
        def tree_unflatten(cls, size, children):
            return cls(children[0], size)

    interpreters.register_vmappable(
        Sized,
        int,
        int,
        lambda cont, get, s, axis: Sized(cont(s.x, axis), s.size - 1),
        lambda cont, n, s, axis: Sized(cont(n, s.x, axis), s.size + 1),
        None,
    )
    sizes = []
    out = vmap(lambda s: (sizes.append(s.size), Sized(lax.neg(s.x), s.size))[1])(Sized(ONES, 1))
    assert sizes == [0] and out.size == 1
    np.testing.assert_array_equal(out.x, -ONES)
    interpreters.unregister_vmappable(Sized)
    assert vmap(lambda s: s)(Sized(ONES, 1)).size == 1
    with pytest.raises(NotImplementedError, match="axes"):
        interpreters.register_vmappable(Sized, str, int, None, None, None)


def test_values_of_libraries_are_read_as_arrays():
    class Variable:
        shape, dtype, ndim = (3,), np.dtype(np.float64), 1

        def __array__(self, dtype=None, copy=None):
            return np.arange(3.0)

    handlers = interpreters.canonicalize_dtype_handlers
    with pytest.raises(NotImplementedError, match="Variable"):
        handlers[Variable] = np.asarray
    handlers[Variable] = handlers[np.ndarray]
    interpreters.pytype_aval_mappings[Variable] = interpreters.pytype_aval_mappings[np.ndarray]
    out = jit(lambda x: lax.neg(x))(Variable())
    np.testing.assert_array_equal(out, [0, -1, -2])
    assert out.dtype == np.float32 and handlers[np.ndarray](np.arange(2.0)).dtype == np.float32


def test_tangents_of_flat_functions():
    outs, moved = interpreters.jvp(
        lambda x, y: [lax.mul(x, y), y], [ONES, 2 * ONES], [ONES, interpreters.Zero.of(ONES)]
    )
    np.testing.assert_array_equal(moved[0], 2 * ONES)
    np.testing.assert_array_equal(moved[1], 0 * ONES)
    outs, moved, aux = interpreters.jvp(lambda x: ([x], "more"), [ONES], [ONES], has_aux=True)
    assert aux == "more" and len(outs) == len(moved) == 1
