"""Every option acts: its effect is observed here (`OBSERVED`), or by a named test (`TESTED`)."""

import contextlib
import operator
import os
import re
import subprocess
import sys
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from bedrax.core import config
from bedrax.processes import clusters, distributed
from bedrax.xla_backend import clients
from bedrax.xla_backend.compile import compile_options

X = np.ones(3, np.float32)


BRIDGE = pytest.param("jax2tf", marks=pytest.mark.needs("tensorflow"))


def flags(prefix="jax"):
    """The options that act and whose names begin so: ``jax`` or ``jax2tf``."""
    jax.config.values  # declares those of every package that can be imported
    return {f.name: f for f in config.all_flags() if f.inert is None and f.name.partition("_")[0] == prefix}


def build(path):
    """One of the compiler's options. They live as long as their owner."""
    options = compile_options(1, jax.devices()[:1])
    inner = options.executable_build_options
    return repr(operator.attrgetter(path)(inner))


def raised(function):
    try:
        return function()
    except Exception as error:
        return type(error).__name__


def warned(function):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return len(found)


def kept(tmp_path, name, *values):
    """The number of entries of a cache after a program was compiled twice, at two places."""
    on = {} if name == "jax_enable_compilation_cache" else {"jax_enable_compilation_cache": True}
    with config.overriding(jax_compilation_cache_dir=str(tmp_path), **on):
        size = float(np.sum([ord(c) for c in name + repr(config.find(name).value)]))
        jax.jit(lambda x: lax.sin(x) * size)(X)
        jax.jit(lambda x: lax.sin(x) * size)(X)
        return len(list(tmp_path.iterdir()))


def unreadable(tmp_path):
    """The behaviour for an entry that cannot be read."""
    with config.overriding(jax_compilation_cache_dir=str(tmp_path), jax_enable_compilation_cache=True):
        f = lambda x: lax.tan(x) * 5
        jax.jit(lambda x: f(x))(X)
        for entry in tmp_path.iterdir():
            entry.write_bytes(b"x")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return raised(lambda: float(jax.jit(lambda x: f(x))(X)[0]))


def client_options(name, monkeypatch):
    """The arguments of jaxlib's client for the CPU of one process of two."""
    seen = {}
    monkeypatch.setattr(
        clients.runtime, "make_cpu_client", lambda n, fast, threads, **more: seen.update(more, n=n, fast=fast)
    )
    monkeypatch.setattr(clients.coordination, "cpu_collectives", lambda kind, client: kind)
    if name not in ("n", "fast"):
        monkeypatch.setattr(clients, "run", types.SimpleNamespace(client=None, process_id=0, num_processes=2))
    clients._make_cpu()
    return seen[name]


def connected(monkeypatch):
    """The arguments of the service of a run of two processes, and whether the processes agree on a time to stop."""
    seen = {"preempted": False}
    fake = types.SimpleNamespace(connect=lambda: None, initialize=lambda client: seen.update(preempted=True))
    monkeypatch.setattr(distributed.rendezvous, "meet", lambda address, *args: address)
    monkeypatch.setattr(distributed.peers, "start", lambda *args: None)
    monkeypatch.setattr(distributed.coordination, "serve", lambda *args: seen.update(recoverable=args[-2]))
    monkeypatch.setattr(distributed.coordination, "client", lambda *args: fake)
    monkeypatch.setattr(distributed.coordination, "preemption_sync_manager", lambda: fake)
    monkeypatch.setattr(distributed, "global_state", types.SimpleNamespace())
    monkeypatch.setattr(clients, "run", None)
    distributed._connect(clusters.Cluster("localhost:1", 2, 0), 1, 1, 1, None, {})
    return seen


def plugin_options(monkeypatch, platform):
    """The options of a plugin's client."""
    seen = {}
    fake = types.SimpleNamespace(
        pjrt_plugin_loaded=lambda name: True,
        pjrt_plugin_initialized=lambda name: True,
        make_c_api_client=lambda name, given, client: seen.update(given),
    )
    monkeypatch.setattr(clients.runtime, "xla_client", lambda: fake)
    monkeypatch.setattr(clients, "_factories", {})
    clients.register_plugin(platform, c_api=object())
    clients._factories[platform][0]()
    return sorted(seen.items())


def listed(monkeypatch):
    """The order of the devices of two processes, with a client that lists them by their numbers."""
    devices = [types.SimpleNamespace(process_index=i % 2, id=i) for i in range(4)]
    return [d.id for d in clients.devices(types.SimpleNamespace(devices=lambda: devices))]


def behind_a_proxy(monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    return warned(lambda: connected(monkeypatch))


def logged(caplog, function):
    function()
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def with_wrong_cotangent():
    """The gradient of a function with a rule that returns one of another dtype."""
    f = jax.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct.astype(jnp.float16),))
    return raised(lambda: str(jax.grad(lambda x: f(x).sum())(X).dtype))


def with_large_constant():
    table = np.arange(99.0)
    with config.overriding(jax_captured_constants_warn_bytes=8), pytest.warns(UserWarning) as found:
        jax.jit(lambda x: lax.sin(x) + table)(1.0)
    return "used by add at" in str(found[0].message) and "test_options_act" in str(found[0].message)


def enter_mesh():
    with jax.make_mesh((1,), ("x",)):
        return "entered"


def checked_kernel():
    from jax.experimental import pallas as pl

    def kernel(x_ref, out_ref):
        pl.debug_check(x_ref[0] > 1, "the first is large")
        out_ref[...] = x_ref[...]

    return raised(lambda: jax.block_until_ready(pl.pallas_call(kernel, jnp.asarray(X), interpret=True)(X)).shape)


def converted_ops(function):
    import tensorflow as tf
    from jax.experimental import jax2tf

    graph = tf.function(jax2tf.convert(function), autograph=False).get_concrete_function(X).graph
    ops = [
        *graph.get_operations(),
        *(op for f in graph._functions.values() for op in getattr(f.graph, "get_operations", list)()),
    ]
    return {op.type for op in ops}, any("_XlaMustCompile" in str(op.node_def) for op in ops)


def dumped(folder):
    """The module of a program with an array in it."""
    with config.overriding(jax_dump_ir_to=str(folder)):
        jax.jit(lambda x: x + np.arange(300.0))(1.0)
    return "".join(f.read_text(encoding="utf-8") for f in folder.iterdir())


# option -> (another value than its default, a function that shows the difference); its parameters are fixtures.
OBSERVED = {
    "jax_random_seed_offset": (7, lambda: jax.random.key_data(jax.random.key(0)).tolist()),
    "jax_high_dynamic_range_gumbel": (True, lambda: jax.random.gumbel(jax.random.key(0), (4,)).tolist()),
    "jax_debug_infs": (True, lambda: raised(lambda: float(jnp.log(jnp.float32(0.0))))),
    "jax_debug_nans": (True, lambda: raised(lambda: str(jnp.log(jnp.float32(-1.0))))),
    "jax_check_static_indices": (True, lambda: raised(lambda: float(jnp.ones(3)[7]))),
    "jax_embedded_constants_max_bytes": (1 << 20, lambda tmp_path: "stablehlo.constant" in dumped(tmp_path)),
    "jax_optimization_level": ("O1", lambda: build("optimization_level")),
    "jax_memory_fitting_level": ("O0", lambda: build("memory_fitting_level")),
    "jax_exec_time_optimization_effort": (0.5, lambda: build("exec_time_optimization_effort")),
    "jax_memory_fitting_effort": (0.5, lambda: build("memory_fitting_effort")),
    "jax_disable_most_optimizations": (True, lambda: build("debug_options.xla_backend_optimization_level")),
    "jax_compiler_enable_remat_pass": (False, lambda: build("debug_options.xla_disable_hlo_passes")),
    "jax_xla_profile_version": (3, lambda: compile_options(1, jax.devices()[:1]).profile_version),
    "jax_enable_compilation_cache": (True, lambda tmp_path: kept(tmp_path, "jax_enable_compilation_cache")),
    "jax_compilation_cache_max_size": (0, lambda tmp_path: kept(tmp_path, "jax_compilation_cache_max_size")),
    "jax_compilation_cache_include_metadata_in_key": (
        True, lambda tmp_path: kept(tmp_path, "jax_compilation_cache_include_metadata_in_key")),
    "jax_persistent_cache_min_entry_size_bytes": (
        1 << 30, lambda tmp_path: kept(tmp_path, "jax_persistent_cache_min_entry_size_bytes")),
    "jax_raise_persistent_cache_errors": (True, unreadable),
    "jax_export_calling_convention_version": (9, lambda: jax.export.export(jax.jit(jnp.sin))(X).calling_convention_version),
    "jax_cpu_collectives_implementation": ("mpi", lambda monkeypatch: client_options("collectives", monkeypatch)),
    "jax_cpu_get_local_topology_timeout_minutes": (
        9, lambda monkeypatch: client_options("get_local_topology_timeout_minutes", monkeypatch)),
    "jax_cpu_get_global_topology_timeout_minutes": (
        9, lambda monkeypatch: client_options("get_global_topology_timeout_minutes", monkeypatch)),
    "jax_cpu_enable_async_dispatch": (False, lambda monkeypatch: client_options("fast", monkeypatch)),
    "jax_cuda_visible_devices": ("1,3", lambda monkeypatch: plugin_options(monkeypatch, "cuda")),
    "jax_rocm_visible_devices": ("1,3", lambda monkeypatch: plugin_options(monkeypatch, "rocm")),
    "jax_oneapi_visible_devices": ("1,3", lambda monkeypatch: plugin_options(monkeypatch, "oneapi")),
    "jax_pjrt_client_create_options": (
        "memory_fraction:0.5;preallocate:false", lambda monkeypatch: plugin_options(monkeypatch, "other")),
    "jax_sort_devices_by_process_index": (False, listed),
    "jax_distributed_debug": (
        True, lambda monkeypatch, caplog: logged(caplog, lambda: connected(monkeypatch))),
    "jax_check_proxy_envs": (False, behind_a_proxy),
    "jax_disable_bwd_checks": (True, with_wrong_cotangent),
    "jax_log_checkpoint_residuals": (True, lambda caplog: logged(caplog, lambda: jax.grad(jax.checkpoint(jnp.sin))(1.0))),
    "jax_disallow_mesh_context_manager": (True, lambda: raised(enter_mesh)),
    "jax_pallas_enable_debug_checks": (True, checked_kernel),
    "jax_dump_ir_modes": ("jaxpr,stablehlo", lambda tmp_path: (len(dumped(tmp_path)) and len(list(tmp_path.iterdir())))),
    "jax_include_debug_info_in_dumps": (False, lambda tmp_path: "test_options_act" in dumped(tmp_path)),
    "jax_hlo_source_file_canonicalization_regex": (
        ".*test_", lambda: "test_options_act" in jax.jit(lambda x: x + 19).lower(X).as_text(debug_info=True)),
    "jax_num_cpu_devices": (5, lambda monkeypatch: client_options("n", monkeypatch)),
    "jax_enable_recoverability": (True, lambda monkeypatch: connected(monkeypatch)["recoverable"]),
    "jax_enable_preemption_service": (False, lambda monkeypatch: connected(monkeypatch)["preempted"]),
    "jax2tf_default_native_serialization": (True, lambda: "XlaCallModule" in converted_ops(jnp.sin)[0]),
    "jax2tf_compile_jitted": (True, lambda: converted_ops(jax.jit(jnp.sin))[1]),
    "jax_enable_x64": (True, lambda: str(jnp.arange(3).dtype)),
    "jax_explicit_x64_dtypes": ("error", lambda: raised(lambda: warned(lambda: jnp.zeros(3, np.float64)))),
    "jax_numpy_dtype_promotion": ("strict", lambda: raised(lambda: str((jnp.int32(1) + jnp.ones(3, np.float16)).dtype))),
    "jax_numpy_rank_promotion": ("raise", lambda: raised(lambda: (jnp.ones(3) + jnp.ones((2, 3))).shape)),
    "jax_default_matmul_precision": ("float32", lambda: str(jax.make_jaxpr(jnp.dot)(X, X))),
    "jax_default_prng_impl": ("rbg", lambda: str(jax.random.key(0).dtype)),
    "jax_enable_custom_prng": (True, lambda: str(jax.random.PRNGKey(0).dtype)),
    "jax_legacy_prng_key": ("error", lambda: raised(lambda: jax.random.bits(jax.random.PRNGKey(0)).shape)),
    "jax_softmax_custom_jvp": (True, lambda: str(jax.make_jaxpr(jax.nn.softmax)(X))),
    "jax_no_tracing": (True, lambda: raised(lambda: jax.jit(lambda x: x + 17)(1).shape)),
    "jax_no_execution": (True, lambda: raised(lambda: jax.jit(lambda x: x + 18)(1).shape)),
    "jax_disable_jit": (True, lambda: raised(lambda: jax.jit(lambda x: float(x))(1.0)) == "ConcretizationTypeError"),
    "jax_debug_key_reuse": (True, lambda: raised(lambda: [jax.random.bits(k).shape for k in [jax.random.key(0)] * 2])),
    "jax_captured_constants_warn_bytes": (8, lambda: warned(lambda: jax.jit(lambda x: x + np.arange(99.0))(1.0))),
    "jax_captured_constants_report_frames": (1, with_large_constant),
    "jax_threefry_partitionable": (False, lambda: jax.random.bits(jax.random.key(0), (4,)).tolist()),
}  # fmt: skip


_OPTIONS = "packages/xla_backend/tests/test_options.py"
_CACHE = "packages/xla_backend/tests/test_compilation_cache.py"
_RETRACING = "packages/xla_backend/tests/test_retracing.py"
# option -> the test that observes it.
TESTED = {
    "jax_check_tracer_leaks": "packages/numpy_backend/tests/test_jit_and_errors.py::test_check_tracer_leaks_raises_at_the_end_of_a_trace",
    "jax_enable_checks": "packages/core/tests/test_kernel.py::test_derived_programs_are_checked_under_enable_checks",
    "jax_explain_cache_misses": "packages/jax/tests/test_options.py::test_cache_misses_are_explained",
    "jax_pprint_use_color": "packages/core/tests/test_printing.py::test_colors_on_a_terminal",
    "jax_show_progress": "packages/inspect/tests/test_progress.py::test_a_long_compilation_shows_its_progress",
    "jax_warn_jit_in_loop": f"{_RETRACING}::test_jit_in_a_loop_warns_once",
    "jax_warn_growing_shapes": f"{_RETRACING}::test_growing_shapes_warn_once",
    "jax_warn_eager_loop": f"{_RETRACING}::test_an_eager_loop_warns_once",
    "jax_traceback_filtering": "packages/core/tests/test_source.py::test_our_frames_are_removed",
    "jax_logging_level": "packages/core/tests/test_config.py::test_logging",
    "jax_debug_log_modules": "packages/core/tests/test_config.py::test_logging",
    "jax_debug_leaked_clients_on_clear_backends": "packages/xla_backend/tests/test_clients.py::test_the_error_names_the_platforms_of_clients_still_in_use",
    "jax_transfer_guard": f"{_OPTIONS}::test_a_guard_refuses_implicit_transfers",
    "jax_transfer_guard_host_to_device": f"{_OPTIONS}::test_a_guard_refuses_implicit_transfers",
    "jax_transfer_guard_device_to_host": f"{_OPTIONS}::test_a_guard_for_all_threads_and_the_other_guards_reach_the_runtime",
    "jax_array_garbage_collection_guard": f"{_OPTIONS}::test_a_guard_for_all_threads_and_the_other_guards_reach_the_runtime",
    "jax_thread_guard": "packages/processes/tests/test_runs.py::test_the_thread_guard_refuses_computations_of_all_processes_in_other_threads",
    "jax_log_compiles": "packages/jax/tests/test_behaviour.py::test_compilations_are_logged_at_the_level_debug",
    "jax_dump_ir_to": f"{_OPTIONS}::test_programs_are_written_to_a_folder",
    "jax_transfer_guard_device_to_device": "tests/surface/test_options_act.py::test_transfers_between_devices_are_guarded",
    "jax_use_shardy_partitioner": "packages/xla_backend/tests/test_placement.py::test_eight_cpu_devices",
    "jax_default_device": "packages/xla_backend/tests/test_placement.py::test_eight_cpu_devices",
    "jax_compilation_cache_dir": f"{_CACHE}::test_a_program_is_compiled_once_for_all_processes",
    "jax_first_calls_by_numpy": "packages/xla_backend/tests/test_first_calls.py::test_placement_commitment_and_weak_types_are_those_of_a_program",
    "jax_compilation_cache_check_contents": f"{_CACHE}::test_an_entry_is_compared_with_a_new_compilation",
    "jax_persistent_cache_min_compile_time_secs": f"{_CACHE}::test_fast_compilations_are_not_kept",
    **dict.fromkeys(
        (
            "jax_mtls_cert_file",
            "jax_mtls_key_file",
            "jax_mtls_ca_file",
            "jax_mtls_peer_uri_prefix",
            "jax_distributed_verify_secure_credentials",
        ),
        "packages/processes/tests/test_one_process.py::test_certificates_of_options",
    ),
}
AT_START = ("jax_platforms", "jax_platform_name", "jax_xla_backend")


@pytest.mark.parametrize("prefix", ["jax", BRIDGE])
def test_every_option_is_seen_to_act(prefix, absent_tests):
    known = {name for name in (*OBSERVED, *TESTED, *AT_START) if name.partition("_")[0] == prefix}
    without = {f.name for f in config.all_flags() if f.inert is not None and not isinstance(f._inert, str)}
    known -= without  # with the jaxlib that is installed
    assert not flags(prefix).keys() - known, "observe it, or give it a reason in a table of inert options"
    assert not known - flags(prefix).keys()
    assert not absent_tests(TESTED.values())


def marks(name):
    return BRIDGE.marks if name.startswith("jax2tf") else ()


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in OBSERVED])
def test_an_option_acts(name, tmp_path, monkeypatch, caplog):
    value, observe = OBSERVED[name]
    if (why := config.find(name).inert) is not None:
        with pytest.warns(UserWarning, match=re.escape(why)), config.find(name)(value):
            return
    wanted = observe.__code__.co_varnames[: observe.__code__.co_argcount]
    seen = []
    for setting in (contextlib.nullcontext(), flags(name.partition("_")[0])[name](value)):
        folder = tmp_path / str(len(seen))
        folder.mkdir()
        given = {"tmp_path": folder, "monkeypatch": monkeypatch, "caplog": caplog}
        caplog.clear()
        with setting:
            seen.append(observe(**{n: given[n] for n in wanted if n in given}))
    assert seen[0] != seen[1]


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "JAX_PLATFORMS": "", **environment},
        capture_output=True,
        text=True,
    )


def test_transfers_between_devices_are_guarded():
    code = "import jax; x = jax.numpy.ones(3); print(jax.device_put(x, jax.devices()[1]).devices())"
    count = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}
    assert "id=1" in run(code, **count).stdout
    refused = run(code, **count, JAX_TRANSFER_GUARD_DEVICE_TO_DEVICE="disallow_explicit")
    assert refused.returncode and "isallowed device-to-device" in refused.stderr


@pytest.mark.parametrize("name", AT_START)
def test_a_platform_is_chosen_at_the_start(name):
    found = run("import jax; jax.devices()", **{name.upper(): "nowhere"})
    assert found.returncode and "nowhere" in found.stderr
