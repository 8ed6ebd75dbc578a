"""jaxlib's runtime: devices, executables, and the Python interface of its C++ dispatch.

The import of `jaxlib._jax` takes about 0.1 s. Three things are registered with C++: the states of `enable_x64` and
`disable_jit`, the cache key of our trace context, and the tracer class.
"""

from __future__ import annotations

import collections
import contextlib
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final

from bedrax.core import avals, config, context, tracing
from bedrax.core.avals import ShapedArray
from bedrax.pytree.engine import load_whole, uninterrupted

_jax, _hlo = load_whole("jaxlib._jax"), load_whole("jaxlib._hlo")

from bedrax.xla_backend.door import versions  # noqa: E402  (reads the module that is loaded here)
from bedrax.xla_backend.door.versions import jaxlib_version as jaxlib_version  # noqa: E402

ArrayImpl = _jax.ArrayImpl
Client = _jax.Client
CompileOnlyClient = _jax.CompileOnlyPyClient
CompileOptions = _jax.CompileOptions
Device = _jax.Device
DeviceAssignment = _jax.DeviceAssignment
DeviceList = _jax.DeviceList
ifrt_programs = _jax.ifrt_programs
HloSharding = _hlo.HloSharding
OpSharding = _hlo.OpSharding
HloPrintOptions = _hlo.HloPrintOptions
XlaLayout = _hlo.Layout
XlaComputation = _hlo.XlaComputation
JaxRuntimeError = _jax.JaxRuntimeError
LoadedExecutable = _jax.LoadedExecutable
PjitFunction = _jax.PjitFunction
PjitFunctionCache = _jax.PjitFunctionCache
Sharding: Any = _jax.Sharding
GSPMDShardingBase: Any = _jax.GSPMDSharding
NamedShardingBase: Any = _jax.NamedSharding
SingleDeviceShardingBase: Any = _jax.SingleDeviceSharding
Token = _jax.Token
batched_block_until_ready = _jax.batched_block_until_ready
batched_device_put = _jax.batched_device_put


def put_copy(aval: Any, sharding: Any, value: Any, device: Any, committed: bool) -> Any:
    """An array on one device, in memory of the device: a copy of a NumPy array."""
    copied = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
    return batched_device_put(aval, sharding, [value], [device], committed, host_buffer_semantics=copied)


collect_garbage = _jax.collect_garbage
json_to_pprof_profile = _jax.json_to_pprof_profile
pprof_profile_to_json = _jax.pprof_profile_to_json
register_custom_call_partitioner = _jax.register_custom_call_partitioner
encode_inspect_sharding_callback = _jax.encode_inspect_sharding_callback
buffer_to_dlpack_managed_tensor = _jax.buffer_to_dlpack_managed_tensor
dlpack_managed_tensor_to_buffer = _jax.dlpack_managed_tensor_to_buffer
pjit = _jax.pjit
default_topology = _jax.get_default_c_api_topology
TransferConnection = _jax.TransferConnection
TransferServer = _jax.TransferServer
start_transfer_server = _jax.start_transfer_server


def array_result_handler(aval: ShapedArray, sharding: Any, committed: bool) -> Any:
    """The function that makes an array of type `aval` from a result of an executable."""
    if versions.has("result handlers with _skip_checks"):
        return _jax.array_result_handler(aval, sharding, committed, _skip_checks=True)
    return _jax.array_result_handler(aval, sharding, committed)


def is_build_option(name: str) -> bool:
    """Whether a compiler option is a typed build option and not one of XLA's flags."""
    return name in dir(_jax.ExecutableBuildOptions)


def set_build_option(build: Any, name: str, value: float) -> None:
    """Set one of the compiler's build options, unless this jaxlib lacks it (`versions.CAPABILITIES`)."""
    if name not in versions.CAPABILITIES or versions.has(name):
        setattr(build, name, value)


# ---- states that C++ dispatch reads, and that are part of its cache key ----

guard_lib = _jax.guard_lib
_State = _jax.config.Config
# C++ reads these two, too. They are not part of its key, because the context has them.
_x64 = _State("bedrax_enable_x64", False)
_disable_jit = _State("bedrax_disable_jit", False)
_post_hook = _State("bedrax_jit_post_hook", None, include_in_jit_key=True, include_in_trace_context=True)
# The keyed variables of the context: those of threads that change none, and those that this thread changed. Each is one
# object per combination of values. C++ hashes both at every call.
_everywhere = _State(
    "bedrax_everywhere", context.global_trace_context(), include_in_jit_key=True, include_in_trace_context=True
)
_here = _State("bedrax_here", None, include_in_jit_key=True, include_in_trace_context=True)
# Which calls C++ dispatch runs without Python, and the part that this thread has in them (`turns`).
calls: Final = _State("bedrax_calls", None, include_in_jit_key=True, include_in_trace_context=False)
part: Final = _State("bedrax_part", None, include_in_jit_key=True, include_in_trace_context=False)
# Not None while the current trace must see every call (staging, named axes in scope).
_tracing = _State("bedrax_tracing", None, include_in_jit_key=True, include_in_trace_context=True)

UNSET = _jax.config.unset


def context_changed(new: context.Context) -> None:
    """Pass the context of this thread to C++."""
    _here.set_local(UNSET if new.own is None else new.own)
    _x64.set_local(new.values.get(config.enable_x64.name, UNSET))
    _disable_jit.set_local(new.values.get(config.disable_jit.name, UNSET))


def option_changed(flag: config.Flag) -> None:
    """Pass a changed global value to C++."""
    if flag.keyed:
        _everywhere.set_global(context.global_trace_context())
        _x64.set_global(config.enable_x64.global_value)
        _disable_jit.set_global(config.disable_jit.global_value)


context_changed(context.thread.context)
option_changed(config.enable_x64)

_jax.jax_jit.set_enable_x64_state(_x64)
_jax.jax_jit.set_disable_jit_state(_disable_jit)
_jax.jax_jit.set_post_hook_state(_post_hook)
_jax.set_tracer_class(tracing.Tracer)


# Make this thread's C++ dispatch call Python at every call (`True`) or not (`None`). Returns the old value.
set_must_see_calls = _tracing.swap_local


def must_see_calls() -> bool:
    """Whether C++ dispatch has to call Python at every call in this thread."""
    return _tracing.value is True


def set_unconstrained_marker(marker: object) -> None:
    """Set the object that stands in a partition spec for a dimension of the partitioner's choice."""
    _jax.set_pspec_unconstrained(marker)


# ---- import paths that C++ calls by name ----

_PATHS = ("jax", "jax._src", "jax.core", "jax._src.named_sharding", "jax._src.sharding_impls")
_prime_lock = threading.Lock()


@contextlib.contextmanager
def paths_called_by_name(
    make_single_device_sharding: Callable[..., Any], check_pspec: Callable[..., Any]
) -> Iterator[None]:
    """Inside this context, the modules that C++ imports by name are ours.

    C++ looks each function up once, at its first use, and keeps it. These first uses happen inside this context.
    Afterwards the import package `jax` is irrelevant. The cost: for these microseconds (at import, and when the first
    client is made), another thread that imports `jax` would get an empty module.
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

_POOL_SIZES = ("PJRT_NPROC", "NPROC")  # the first one that is set counts


def make_cpu_client(num_devices: int | None, asynchronous: bool, threads: int | None, **options: Any) -> Client:
    """A client for the host's CPU. jaxlib's custom-call handlers are registered.

    Args:
      threads: a lower bound for the size of the client's pool, or None. jaxlib takes the size from a variable of the
        environment, by default the number of cores.
    """
    with _at_least(threads) if threads else contextlib.nullcontext():
        return xla_client().make_cpu_client(num_devices=num_devices, asynchronous=asynchronous, **options)


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _at_least(threads: int) -> Iterator[None]:
    """Set the variable that jaxlib reads for the size of a client's pool."""
    size = cores()
    for name in reversed(_POOL_SIZES):
        with contextlib.suppress(KeyError, ValueError):
            size = int(os.environ[name])
    before = os.environ.get(_POOL_SIZES[0])
    os.environ[_POOL_SIZES[0]] = str(max(size, threads))
    try:
        yield
    finally:
        if before is None:
            del os.environ[_POOL_SIZES[0]]
        else:
            os.environ[_POOL_SIZES[0]] = before


def xla_client() -> ModuleType:
    """jaxlib's module of clients and plugins, loaded with the first client."""
    return load_whole("jaxlib.xla_client")


def plugin_extension(package: str, name: str) -> Any:
    """A C++ module of a plugin, or None."""
    from jaxlib import plugin_support

    return uninterrupted(lambda: plugin_support.import_from_plugin(package, name))


def profiler() -> Any:
    """XLA's profiler."""
    return load_whole("jaxlib._profiler")


def profile_data_types() -> tuple[Any, ...]:
    """The types of a read profile."""
    data = load_whole("jaxlib._profile_data")
    return data.ProfileData, data.ProfileEvent, data.ProfileLine, data.ProfilePlane


def cost_analysis(client: Client, computation: Any) -> dict[Any, Any]:
    """XLA's cost estimate for a computation before optimization."""
    return _jax.hlo_module_cost_analysis(client, computation.get_hlo_module())


# Fields of a cache miss's data that C++ reads.
FastpathData: Final = collections.namedtuple(
    "FastpathData",
    "xla_executable out_pytree_def in_shardings out_shardings out_avals out_committed kept_var_bitvec "
    "in_device_local_layouts const_args",
)
