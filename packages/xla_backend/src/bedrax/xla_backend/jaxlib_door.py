"""The only module that touches jaxlib's private names.

It imports `jaxlib._jax` (about 0.1 s) and nothing of MLIR; MLIR is loaded by `mlir()` at the first
lowering. It registers with jaxlib's C++ what its dispatch asks of a Python layer: the states of
`enable_x64` and `disable_jit`, the cache key of our trace context, the tracer class. A new jaxlib
release is this file's work. Written for 0.10.2, tolerates 0.11.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import types

from jaxlib import _hlo, _jax

from bedrax.core import avals, config, tracing

ArrayImpl = _jax.ArrayImpl
ArrayCopySemantics = _jax.ArrayCopySemantics
Client = _jax.Client
CompileOptions = _jax.CompileOptions
Device = _jax.Device
DeviceAssignment = _jax.DeviceAssignment
DeviceList = _jax.DeviceList
ifrt_programs = _jax.ifrt_programs
HloSharding = _hlo.HloSharding
OpSharding = _hlo.OpSharding
HloPrintOptions = _hlo.HloPrintOptions
XlaComputation = _hlo.XlaComputation
JaxRuntimeError = _jax.JaxRuntimeError
LoadedExecutable = _jax.LoadedExecutable
PjitFunction = _jax.PjitFunction
PjitFunctionCache = _jax.PjitFunctionCache
Sharding = _jax.Sharding
GSPMDShardingBase = _jax.GSPMDSharding
NamedShardingBase = _jax.NamedSharding
SingleDeviceShardingBase = _jax.SingleDeviceSharding
Token = _jax.Token
batched_block_until_ready = _jax.batched_block_until_ready
batched_copy_array_to_devices_with_sharding = _jax.batched_copy_array_to_devices_with_sharding
batched_device_put = _jax.batched_device_put
buffer_to_dlpack_managed_tensor = _jax.buffer_to_dlpack_managed_tensor
dlpack_managed_tensor_to_buffer = _jax.dlpack_managed_tensor_to_buffer
mlir_tools = _jax.mlir
hlo_to_stablehlo = _jax.mlir.hlo_to_stablehlo
deserialize_portable_artifact = _jax.mlir.deserialize_portable_artifact
serialize_portable_artifact = _jax.mlir.serialize_portable_artifact
refine_polymorphic_shapes = _jax.mlir.refine_polymorphic_shapes
pytree_registry = _jax.pytree.default_registry()
pjit = _jax.pjit
runtime_mlir = _jax.mlir

jaxlib_version = tuple(int(part) for part in __import__("jaxlib.version").version.__version__.split(".")[:3])

_HANDLER_OPTIONS = {"_skip_checks": True} if jaxlib_version < (0, 11) else {}


def array_result_handler(aval, sharding, committed: bool):
    """What makes an array of type `aval` of an executable's result."""
    return _jax.array_result_handler(aval, sharding, committed, **_HANDLER_OPTIONS)


# ---- states that C++ dispatch reads, and that are part of its cache key ----

guard_lib = _jax.guard_lib
_State = _jax.config.Config
_x64 = _State("bedrax_enable_x64", False, include_in_jit_key=True, include_in_trace_context=True)
_disable_jit = _State("bedrax_disable_jit", False, include_in_jit_key=True, include_in_trace_context=True)
_post_hook = _State("bedrax_jit_post_hook", None, include_in_jit_key=True, include_in_trace_context=True)
# All other keyed options in one object per combination of values: C++ hashes it at every call.
_options = _State(
    "bedrax_options", config.global_trace_context(), include_in_jit_key=True, include_in_trace_context=True
)
# Not None while a trace is current that must see every call (staging, named axes in scope).
_tracing = _State("bedrax_tracing", None, include_in_jit_key=True, include_in_trace_context=True)

_OWN_STATES = {"jax_enable_x64": _x64, "jax_disable_jit": _disable_jit}


def option_changed(name: str, flag: config.Flag) -> None:
    """Tell C++ about a changed option."""
    state = _OWN_STATES.get(name)
    if state is not None:
        state.set_global(flag.global_value)
        local = flag.local_value
        state.set_local(_jax.config.unset if local is config.UNSET else local)
    if flag.keyed:
        in_force, everywhere = config.trace_context(), config.global_trace_context()
        _options.set_global(everywhere)
        _options.set_local(_jax.config.unset if in_force is everywhere else in_force)


for _flag in (config.enable_x64, config.disable_jit):
    option_changed(_flag.name, _flag)

_jax.jax_jit.set_enable_x64_state(_x64)
_jax.jax_jit.set_disable_jit_state(_disable_jit)
_jax.jax_jit.set_post_hook_state(_post_hook)
_jax.set_tracer_class(tracing.Tracer)


# Make this thread's C++ dispatch ask Python at every call (`True`) or not (`None`); returns the old value.
set_must_see_calls = _tracing.swap_local


def must_see_calls() -> bool:
    """Whether C++ dispatch has to ask Python at every call in this thread."""
    return _tracing.value is True


UNSET = _jax.config.unset


def set_unconstrained_marker(marker: object) -> None:
    """What a partition spec holds for a dimension that the partitioner may choose."""
    _jax.set_pspec_unconstrained(marker)


# ---- import paths that C++ calls by name ----

_PATHS = ("jax", "jax._src", "jax.core", "jax._src.named_sharding", "jax._src.sharding_impls")
_prime_lock = threading.Lock()


@contextlib.contextmanager
def paths_called_by_name(make_single_device_sharding, check_pspec):
    """For the duration, the modules that C++ imports by name are ours.

    C++ looks each function up once, at its first use, and keeps it. So `devices` makes those first
    uses happen in here, and afterwards it does not matter whether an import package `jax` exists.
    """
    with _prime_lock:
        saved = {name: sys.modules.get(name) for name in _PATHS}
        for name in _PATHS:
            module = types.ModuleType(name)
            module.__path__ = []
            sys.modules[name] = module
        sys.modules["jax.core"].ShapedArray = avals.ShapedArray
        sys.modules["jax._src.sharding_impls"].make_single_device_sharding = make_single_device_sharding
        sys.modules["jax._src.named_sharding"].check_pspec = check_pspec
        try:
            yield
        finally:
            for name, module in saved.items():
                if module is None:
                    sys.modules.pop(name, None)
                else:
                    sys.modules[name] = module


# ---- clients ----


def make_cpu_client(num_devices: int | None, asynchronous: bool, **options) -> Client:
    """A client for the host's CPU, with jaxlib's own custom-call handlers registered."""
    from jaxlib import xla_client

    return xla_client.make_cpu_client(num_devices=num_devices, asynchronous=asynchronous, **options)


_registered_libraries: set[str] = set()

# Which jaxlib module registers the custom calls whose names begin with a prefix.
_CUSTOM_CALL_LIBRARIES = (
    ("lapack_", "lapack"),
    ("tridiagonal_solve_", "lapack"),
    ("cpu_sparse", "cpu_sparse"),
    ("cusolver_", "gpu_solver"),
    ("cublas_", "gpu_solver"),
    ("cuhybrid_", "gpu_solver"),
    ("hipsolver_", "gpu_solver"),
    ("hiphybrid_", "gpu_solver"),
    ("cu_", "gpu_linalg"),
    ("hip_", "gpu_linalg"),
    ("cu_threefry", "gpu_prng"),
    ("hip_threefry", "gpu_prng"),
    ("cusparse_", "gpu_sparse"),
    ("hipsparse_", "gpu_sparse"),
    ("cudnn_", "gpu_rnn"),
)


def register_custom_call_library(target: str) -> None:
    """Make the kernels behind custom call `target` known to XLA, if jaxlib ships them."""
    for prefix, library in _CUSTOM_CALL_LIBRARIES:
        if target.startswith(prefix) and library not in _registered_libraries:
            _registered_libraries.add(library)
            import importlib

            from jaxlib import xla_client

            module = importlib.import_module(f"jaxlib.{library}")
            for platform, entries in module.registrations().items():
                for name, value, api_version in entries:
                    xla_client.register_custom_call_target(
                        name, value, platform=platform, api_version=api_version
                    )
            initialize = getattr(getattr(module, "_lapack", None), "initialize", None)
            if initialize is not None:
                initialize()
            targets = getattr(module, "batch_partitionable_targets", list)()
            for name in targets:
                xla_client.register_custom_call_as_batch_partitionable(name)


# ---- MLIR ----

_mlir: types.SimpleNamespace | None = None
_mlir_lock = threading.Lock()


def mlir() -> types.SimpleNamespace:
    """MLIR's Python bindings and the one context that all modules are built in.

    Returns:
      a namespace with `ir` and `context`. Importing and making the context takes tens of
      milliseconds; later calls return the same object.
    """
    global _mlir
    if _mlir is None:
        with _mlir_lock:
            if _mlir is None:
                from jaxlib.mlir import ir
                from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _sdy, _stablehlo

                context = ir.Context()
                registry = ir.DialectRegistry()
                _jax_mlir_ext.register_dialects(registry)
                context.append_dialect_registry(registry)
                context.load_all_available_dialects()
                _stablehlo.register_dialect(context, load=True)
                _chlo.register_dialect(context, load=True)
                _sdy.register_dialect(context, load=True)
                _mlir = types.SimpleNamespace(ir=ir, context=context)
    return _mlir


def mirror(name: str) -> tuple:
    """``__getattr__, __dir__, __all__`` of a module that is `jaxlib.mlir.<name>` under another path."""
    import importlib

    mlir()
    module = importlib.import_module(f"jaxlib.mlir.{name}")
    public = [
        n for n in vars(module) if not n.startswith("_") and not isinstance(vars(module)[n], types.ModuleType)
    ]
    return lambda attribute: getattr(module, attribute), lambda: sorted(vars(module)), public


def stablehlo():
    """StableHLO's own functions: portable artifacts and their versions."""
    mlir()
    from jaxlib.mlir._mlir_libs import _stablehlo

    return _stablehlo


def register_custom_call_target(name: str, fn, platform: str, api_version: int, **options) -> None:
    """Make a compiled function known to XLA."""
    from jaxlib import xla_client

    xla_client.register_custom_call_target(name, fn, platform, api_version, **options)


def register_custom_type(name: str, registration, platform: str) -> None:
    """Make a type of compiled functions' states known to XLA."""
    from jaxlib import xla_client

    xla_client.register_custom_type(name, registration, platform)


def register_as_batch_partitionable(name: str) -> None:
    """Say that a custom call acts on each element along leading axes."""
    from jaxlib import xla_client

    xla_client.register_custom_call_as_batch_partitionable(name)


def include_directory() -> str:
    """Where the headers of XLA's foreign function interface are."""
    import os

    import jaxlib

    return os.path.join(os.path.dirname(jaxlib.__file__), "include")


def profiler():
    """XLA's profiler."""
    from jaxlib import _profiler

    return _profiler


def profile_data_types() -> tuple:
    """The types in which a profile is read."""
    from jaxlib import _profile_data as data

    return data.ProfileData, data.ProfileEvent, data.ProfilePlane


def custom_call_targets(platform: str) -> dict:
    """Names of the custom calls registered for a platform."""
    return _jax.custom_call_targets(platform)


def fastpath_class():
    """Fields that C++ reads from the data which a cache miss hands back (a tuple type with these names)."""
    import collections

    return collections.namedtuple(
        "FastpathData",
        "xla_executable out_pytree_def in_shardings out_shardings out_avals out_committed kept_var_bitvec "
        "in_device_local_layouts const_args",
    )


FastpathData = fastpath_class()


def cost_analysis(client: Client, computation) -> dict:
    """XLA's estimate for a computation that has not been optimized."""
    return _jax.hlo_module_cost_analysis(client, computation.get_hlo_module())
