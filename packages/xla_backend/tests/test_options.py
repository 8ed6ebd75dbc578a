"""Options of devices and compilation have their documented effect."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.core import config, monitoring
from bedrax.core.jitting import Inline, jit
from bedrax.core.staging import make_jaxpr
from bedrax.xla_backend import device_get, device_put, flags
from bedrax.xla_backend.compile import CompilerEffortLevel, compile_options
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.door.runtime import guard_lib
from bedrax.xla_backend.placement import device_put_sharded

f32 = np.float32


def twice(x):
    return lax.add(x, x)


def test_a_guard_refuses_implicit_transfers():
    f = jit(twice)
    x = device_put(np.ones(3, f32))
    f(x)
    for guard in (flags.transfer_guard, flags.transfer_guard_host_to_device):
        with guard("disallow"):
            f(x)  # no transfer
            with pytest.raises(Exception, match="Disallowed host-to-device transfer"):
                f(np.ones(3, f32))
            with pytest.raises(Exception, match="Disallowed host-to-device transfer"):
                lax.add(x, np.ones(3, f32))
            device_put(np.ones(3, f32))
            device_put_sharded([np.ones(3, f32)], list(x.devices()))
            device_get(x)
            with flags.transfer_guard_host_to_device("allow"):
                f(np.ones(3, f32))
        f(np.ones(3, f32))
        with guard("disallow_explicit"), pytest.raises(Exception, match="Disallowed"):
            device_put(np.ones(3, f32))


def test_a_guard_for_all_threads_and_the_other_guards_reach_the_runtime():
    config.config.update("jax_transfer_guard", "log")
    config.config.update("jax_array_garbage_collection_guard", "log")
    try:
        state = guard_lib.global_state()
        assert state.device_to_host == state.host_to_device == guard_lib.TransferGuardLevel.LOG
        assert state.garbage_collect_array == guard_lib.GarbageCollectionGuardLevel.LOG
        config.config.update("jax_transfer_guard_device_to_host", "allow")
        assert state.device_to_host == guard_lib.TransferGuardLevel.ALLOW
    finally:
        for flag in (flags.transfer_guard, flags.transfer_guard_device_to_host, flags.array_garbage_collection_guard):
            config.config.update(flag.name, None)
    assert state.device_to_host is None and state.garbage_collect_array is None


def test_a_refused_thread_guard_does_not_change_that_of_another_thread():
    def enter():
        with flags.thread_guard(True):
            pass

    with ThreadPoolExecutor(1) as pool:
        with flags.thread_guard(True), flags.thread_guard(True):
            for _ in range(2):
                with pytest.raises(Exception, match="already set"):
                    pool.submit(enter).result()
        pool.submit(enter).result()
        config.config.update("jax_thread_guard", True)
        pool.submit(config.config.update, "jax_thread_guard", False).result()
        pool.submit(enter).result()


def test_no_execution():
    f = jit(twice)
    x = f(np.ones(3, f32))  # compiled; C++ dispatches it from now on
    with flags.no_execution(True):
        for run in (lambda: f(np.ones(3, f32)), lambda: lax.sin(x)):
            with pytest.raises(RuntimeError, match="jax_no_execution"):
                run()
    np.testing.assert_array_equal(f(np.ones(3, f32)), [2, 2, 2])


def test_effort_of_the_compiler():
    devices = list(device_put(f32(1)).devices())
    options = compile_options(1, devices)  # the options own the objects that they return
    assert options.executable_build_options.optimization_level == 0
    with flags.optimization_level("O1"):
        options = compile_options(1, devices)
        assert options.executable_build_options.optimization_level == 19
        np.testing.assert_array_equal(jit(twice)(np.ones(2, f32)), [2, 2])
    effort = flags.exec_time_optimization_effort
    if why := effort.inert:  # later versions of jaxlib have only levels
        with pytest.warns(UserWarning, match=why), effort(0.5):
            np.testing.assert_array_equal(jit(twice)(np.ones(2, f32)), [2, 2])
    else:
        with effort(0.5):
            options = compile_options(1, devices)
            assert options.executable_build_options.exec_time_optimization_effort == 0.5
    with flags.compiler_enable_remat_pass(False):
        options = compile_options(1, devices)
        build = options.executable_build_options
        debug = build.debug_options
        assert debug.xla_disable_hlo_passes == "rematerialization"


def test_programs_are_written_to_a_folder(tmp_path):
    def a_name_to_find(x):
        return lax.cos(x)

    config.config.update("jax_dump_ir_to", str(tmp_path / "new"))
    try:
        jit(a_name_to_find)(np.ones(3, f32))
    finally:
        config.config.update("jax_dump_ir_to", "")
    (file,) = (tmp_path / "new").glob("*a_name_to_find*.mlir")
    assert re.match(r"\d{4}_jit_a_name_to_find.mlir", file.name)
    assert "stablehlo.cosine" in file.read_text(encoding="utf-8")


def test_operations_are_counted_by_line(tmp_path):
    """The profile has the counts of a loop that Python unrolls, of a loop in the program, and of a shared program once."""
    shared = jit(lambda x: lax.sin(x))

    def many(x):
        for _ in range(50):
            x = lax.add(x, x)
        x = lax.fori_loop(0, 3, lambda i, y: lax.cos(y), x)
        return lax.mul(shared(x), shared(x))

    with flags.dump_ir_to(str(tmp_path)), flags.dump_ir_modes("eqn_count_pprof"):
        jit(many)(np.ones(3, f32))
    (file,) = tmp_path.glob("*many*")
    assert file.suffix == ".eqn_count_pprof"
    profile = json.loads(runtime.pprof_profile_to_json(file.read_bytes()))
    text = profile["stringTable"].__getitem__
    functions = {f["id"]: text(int(f["name"])) for f in profile["function"]}
    lines = {x["id"]: (functions[y["functionId"]], int(y["line"])) for x in profile["location"] for y in x["line"]}
    found = {}
    for sample in profile["sample"]:
        (label,) = sample["label"]
        stack = tuple(lines[i] for i in sample["locationId"])
        found[text(int(label["str"])), stack] = int(sample["value"][0])
    by_name = {}
    for (name, stack), count in found.items():
        by_name.setdefault(name, []).append((count, stack))
    begin = many.__code__.co_firstlineno
    assert (50, ((many.__qualname__, begin + 2),)) in by_name["add"]
    ((count, stack),) = by_name["cos"]
    assert count == 1
    assert [line for _, line in stack] == [begin + 3, begin + 3]  # the body, and the loop
    ((count, stack),) = by_name["sin"]
    assert count == 1
    assert stack[-1] == (many.__qualname__, begin + 4)


def test_listeners_get_events_of_tracing_lowering_compiling_and_the_cache(tmp_path):
    durations, events = [], []
    heard = lambda event, seconds, **metadata: durations.append((event.rpartition("/")[2], seconds))
    noted = lambda event, **metadata: events.append(event)
    monitoring.register_event_duration_secs_listener(heard)
    monitoring.register_event_listener(noted)
    try:
        with flags.enable_compilation_cache(True), flags.compilation_cache_dir(str(tmp_path)):
            for _ in range(2):
                jit(lambda x: lax.tan(lax.mul(x, x)))(np.ones(3, f32))
        assert [name for name, _ in durations] == [
            "jaxpr_trace_duration",
            "jaxpr_to_mlir_module_duration",
            "backend_compile_duration",
            "jaxpr_trace_duration",  # the second program is found by its equations
        ]
        assert all(seconds >= 0 for _, seconds in durations)
        assert events == [f"/jax/compilation_cache/cache_{what}" for what in ("misses", "hits")]
    finally:
        monitoring.unregister_event_duration_listener(heard)
        monitoring.unregister_event_listener(noted)
    jit(lambda x: lax.tan(x))(np.ones(3, f32))
    assert len(durations) == 4


def test_large_constants_are_warned_of():
    large = np.ones(1000, f32)
    with flags.captured_constants_warn_bytes(1000):
        with pytest.warns(UserWarning, match=r"captures 4,000 bytes of constants"):
            jit(lambda x: lax.add(x, large))(large)
        jit(lambda x: lax.add(x, large[:10]))(large[:10])
    with flags.captured_constants_warn_bytes(-1):
        jit(lambda x: lax.mul(x, large))(large)


@pytest.mark.parametrize(
    "flag, wrong, right",
    [
        (flags.pjrt_client_create_options, ["a", 3, ";"], ["a:1;b:2", {"a": 1}, None]),
        (flags.cuda_visible_devices, ["a", 3, "", "1,"], ["0", "1, 2", "all"]),
        (flags.dump_ir_modes, ["jaxpr_html", 3, ""], ["jaxpr", "jaxpr, stablehlo", "eqn_count_pprof"]),
        (flags.hlo_source_file_canonicalization_regex, ["(", 3], ["a.*", None]),
    ],
)
def test_invalid_values_of_options_are_refused(flag, wrong, right):
    for value in wrong:
        with pytest.raises(ValueError, match=flag.name):
            flag.validate(value)
    for value in right:
        assert flag.validate(value) == value


@pytest.mark.parametrize("inline", [False, True, *Inline])
def test_calls_are_inlined_as_the_option_of_jit_states(inline):
    inner = jit(lambda x: lax.mul(x, x), inline=inline)
    outer = lambda x: lax.add(inner(x), inner(lax.neg(x)))
    x = np.float32(3)
    inline = {False: Inline.AUTO, True: Inline.JAX_LATE}.get(inline, inline)
    equations = [eqn for eqn in make_jaxpr(outer)(x).eqns if eqn.primitive.name == "jit"]
    assert [eqn.params["inline"] for eqn in equations] == ([] if inline is Inline.JAX_EARLY else [inline] * 2)
    text = jit(outer).lower(x).as_text()
    assert text.count("call @") == (0 if inline in (Inline.JAX_EARLY, Inline.JAX_LATE) else 2)
    marked = text.count(f'inlineable = "{inline.value}"')
    assert marked == (2 if inline in (Inline.XLA_EARLY, Inline.XLA_LATE) else 0) == text.count("inlineable")
    for f in (outer, jit(outer)):
        assert f(x) == 18
        assert grad(f)(x) == 12 and vmap(grad(f))(x[None]) == 12
    with pytest.raises(ValueError, match=r"boolean or a (jax|bedrax\.core)\.Inline, got 'auto'"):
        jit(inner, inline="auto")


@pytest.mark.parametrize("name", ["optimization_level", "memory_fitting_level"])
@pytest.mark.parametrize("level", CompilerEffortLevel)
def test_efforts_are_members_names_or_numbers(name, level):
    devices = list(device_put(f32(1)).devices())
    for given in (level, level.name, level.value):
        options = compile_options(1, devices, {name: given})
        assert getattr(options.executable_build_options, name) == level.value
    assert jit(lambda x: lax.neg(x), compiler_options={name: level})(1.0) == -1
    with pytest.raises(ValueError, match=r"3 is not a valid CompilerEffortLevel; it is one of UNKNOWN \(0\), O0 \(9\)"):
        compile_options(1, devices, {name: 3})


def test_a_global_option_reaches_calls_in_a_thread_that_changes_another_one():
    f = jit(twice)
    x = lax.div(np.float32(1), np.float32(1))
    with config.debug_infs(True):
        f(x)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(config.config.update, "jax_no_execution", True).result()
            try:
                with pytest.raises(RuntimeError, match="jax_no_execution"):
                    f(x)
            finally:
                pool.submit(config.config.update, "jax_no_execution", False).result()
        f(x)
