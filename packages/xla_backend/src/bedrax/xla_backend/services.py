"""Services of the backend under the names of `jax.extend`: clients, options of compilation, shardings as bytes."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from bedrax.xla_backend import clients, dispatch, flags
from bedrax.xla_backend.compile import compile_options
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.door.runtime import HloSharding, OpSharding

__all__ = [
    "PipelineStage",
    "backend_xla_version",
    "clear_hlo_module_transformation",
    "clear_in_memory_compilation_cache",
    "create_compile_options",
    "get_compile_options",
    "get_hlo_sharding_from_serialized_proto",
    "get_op_sharding_from_serialized_proto",
    "get_serialized_proto_from_hlo_sharding",
    "register_backend_cache",
    "register_backend_factory",
    "reset_cache",
    "set_cache_dir",
]


def backend_xla_version(platform: str | None = None) -> int | None:
    """The version of XLA that a platform's plugin reports, or None.

    Examples:

      >>> from jax.extend import backend

      >>> version = backend.backend_xla_version("cpu")
      >>> print(version)  # only plug-ins say one
      None
    """
    return getattr(clients.get_backend(platform), "xla_version", None)


def clear_in_memory_compilation_cache() -> None:
    """Clear all traces and compiled programs: the next call of a function traces and compiles it
    (`jax.clear_caches`).

    Examples:

      >>> from jax.extend import backend

      >>> traced = []
      >>> def f(x):
      ...     traced.append(x.shape)
      ...     return 2 * x
      ...
      >>> f = jax.jit(f)
      >>> _ = f(1.), f(2.)
      >>> len(traced)
      1
      >>> backend.clear_in_memory_compilation_cache()
      >>> _ = f(3.)
      >>> len(traced)
      2
    """
    dispatch.clear_caches()


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    env_options_overrides: dict[str, str] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> runtime.CompileOptions:
    """XLA's options for a program.

    Args:
      num_replicas: only 1; programs over many devices are partitioned.
      num_partitions: the number of devices.
      device_assignment: the numbers of the devices (default: the first ones).
      env_options_overrides: options of XLA by name.
      fdo_profile: a profile of earlier runs.
      detailed_logging: whether XLA logs more.
      backend: a platform or its client; default: the default one.

    Raises:
      NotImplementedError: more than one replica.
      ValueError: a device does not exist, or there are fewer devices than partitions.

    Examples:

      >>> from jax.extend import backend

      >>> options = backend.get_compile_options(1, 1, env_options_overrides={"xla_cpu_enable_fast_math": "true"})
      >>> options.num_partitions, ("xla_cpu_enable_fast_math", "true") in options.env_option_overrides
      (1, True)
      >>> backend.get_compile_options(1, 1, device_assignment=[1000])
      Traceback (most recent call last):
        ...
      ValueError: get_compile_options: there are no devices [1000], only [0...]
    """
    if num_replicas != 1:
        raise NotImplementedError(f"programs have one replica, and are partitioned, got {num_replicas=}")
    devices = clients.get_backend(backend).devices()
    if device_assignment is not None:
        known, requested = {d.id: d for d in devices}, [int(i) for i in np.ravel(device_assignment)]
        if unknown := [i for i in requested if i not in known]:
            raise ValueError(f"get_compile_options: there are no devices {unknown}, only {sorted(known)}")
        devices = [known[i] for i in requested]
    if len(devices) < num_partitions:
        raise ValueError(f"get_compile_options: {num_partitions} partitions, but {len(devices)} devices")
    options = compile_options(num_partitions, devices[:num_partitions], env_options_overrides)
    build = options.executable_build_options
    if fdo_profile is not None:
        build.fdo_profile = fdo_profile
    build.debug_options.xla_detailed_logging = detailed_logging
    return options


def create_compile_options(
    computation: Any,
    tuple_args: Any,
    allow_prop_to_inputs: Any,
    allow_prop_to_outputs: Any,
    backend: Any,
    np_dev: Any,
    compiler_options: Any,
) -> Any:
    """Return XLA's options for a program on an array of devices.

    Args:
      computation: the program; no effect: the options do not depend on it.
      tuple_args: whether the program takes one tuple instead of its arguments.
      allow_prop_to_inputs: a boolean per argument: whether the partitioner chooses its sharding.
      allow_prop_to_outputs: a boolean per result: the same.
      backend: the client of a platform.
      np_dev: a NumPy array of devices, one partition each.
      compiler_options: options of XLA by name, or None.

    Examples:

      >>> from jax.interpreters import pxla
      >>> backend = jax.extend.backend.get_backend("cpu")
      >>> devices = np.array(backend.local_devices()[:1])
      >>> options = pxla.create_compile_options(None, False, [False], [True], backend, devices, None)
      >>> options.num_partitions, options.executable_build_options.allow_spmd_sharding_propagation_to_output
      (1, [True])
    """
    options = get_compile_options(
        1, np.size(np_dev), [d.id for d in np.ravel(np_dev)], compiler_options, backend=backend
    )
    options.parameter_is_tupled_arguments = tuple_args
    build = options.executable_build_options
    build.allow_spmd_sharding_propagation_to_parameters = list(allow_prop_to_inputs)
    build.allow_spmd_sharding_propagation_to_output = list(allow_prop_to_outputs)
    return options


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Register a cache that `jax.clear_caches` clears by ``cache.cache_clear()``.

    Args:
      cache: an object with the method ``cache_clear()``, such as a function with `functools.lru_cache`.
      for_what: the name of the cache in the message of the error.

    Raises:
      TypeError: `cache` has no such method.

    Examples:

      >>> from jax.extend import backend

      >>> import functools
      >>> squared = functools.lru_cache(lambda n: n * n)
      >>> backend.register_backend_cache(squared, "squares")
      >>> squared(3), squared.cache_info().currsize
      (9, 1)
      >>> jax.clear_caches()
      >>> squared.cache_info().currsize
      0
    """
    if not callable(getattr(cache, "cache_clear", None)):
        raise TypeError(f"register_backend_cache: the cache for {for_what} has no method cache_clear, got {cache!r}")
    dispatch.other_caches.append(cache.cache_clear)


def register_backend_factory(
    name: str,
    factory: Callable[..., Any],
    *,
    priority: int = 0,
    fail_quietly: bool = True,
    experimental: bool = False,
    make_topology: Callable[..., Any] | None = None,
    c_api: Any = None,
) -> None:
    """Register a platform by the function that makes its client.

    Args:
      name: the name of the platform.
      factory: a function without arguments that returns its client.
      priority: the default platform is the one with the highest priority that starts.
      fail_quietly: only True: a platform that does not start is left out, and named in errors about it.
      experimental, make_topology, c_api: only their defaults.

    Examples:

      >>> from jax.extend import backend

      >>> import subprocess, sys
      >>> program = '''
      ... from jax.extend import backend
      ... def start():
      ...     raise OSError("it is not plugged in")
      ... backend.register_backend_factory("toaster", start, priority=-1)
      ... try:
      ...     backend.get_backend("toaster")
      ... except RuntimeError as error:
      ...     print(error)
      ... '''
      >>> out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
      >>> print(out.stdout)
      Unknown backend 'toaster'; this process has ...toaster (OSError: it is not plugged in)
    """
    if not fail_quietly or experimental or make_topology is not None or c_api is not None:
        raise NotImplementedError(
            "register_backend_factory takes a name, a function and a priority; a platform that does not start is left out"
        )
    clients.register_client_factory(name, factory, priority)


# ---- shardings as bytes


def get_serialized_proto_from_hlo_sharding(sharding: HloSharding) -> bytes:
    """The bytes of XLA's message (OpSharding) for a sharding; the next functions read them.

    Examples:

      >>> from jax.extend import sharding

      >>> one_device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
      >>> message = sharding.get_serialized_proto_from_hlo_sharding(one_device._to_xla_hlo_sharding(2))
      >>> type(message)
      <class 'bytes'>
      >>> sharding.get_hlo_sharding_from_serialized_proto(message)
      {replicated}
    """
    return sharding.to_proto().SerializeToString()


def get_op_sharding_from_serialized_proto(sharding: bytes) -> OpSharding:
    """XLA's message from its bytes, with fields such as `type` and `tile_assignment_dimensions`.

    Examples:

      >>> from jax.extend import sharding

      >>> hlo = sharding.GSPMDSharding.get_replicated(jax.devices())._to_xla_hlo_sharding(2)
      >>> message = sharding.get_serialized_proto_from_hlo_sharding(hlo)
      >>> op = sharding.get_op_sharding_from_serialized_proto(message)
      >>> op.type, op.tile_assignment_dimensions
      (OpSharding_Type.REPLICATED, [])
    """
    proto = OpSharding()
    proto.ParseFromString(sharding)
    return proto


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> HloSharding:
    """The sharding from the bytes of XLA's message.

    Examples:

      >>> from jax.extend import sharding

      >>> hlo = sharding.GSPMDSharding.get_replicated(jax.devices())._to_xla_hlo_sharding(2)
      >>> message = sharding.get_serialized_proto_from_hlo_sharding(hlo)
      >>> sharding.get_hlo_sharding_from_serialized_proto(message)
      {replicated}
      >>> sharding.get_hlo_sharding_from_serialized_proto(message) == hlo
      True
    """
    return HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


# ---- the compiler's pipeline


class PipelineStage(enum.IntEnum):
    """A position in XLA's pipeline for a transformation of modules.

    Examples:

      >>> from jax.extend import xla

      >>> [stage.name for stage in xla.PipelineStage]
      ['PRE_SCHEDULER', 'POST_SCHEDULER']
      >>> xla.PipelineStage.PRE_SCHEDULER < xla.PipelineStage.POST_SCHEDULER
      True
    """

    PRE_SCHEDULER = 0
    POST_SCHEDULER = 1


def clear_hlo_module_transformation(name: str, stage: Any = PipelineStage.PRE_SCHEDULER, platforms: Any = None) -> bool:
    """Return whether a transformation of this name existed: always False, because none can be registered.

    Args:
      name: the name of the transformation.
      stage: a `PipelineStage`.
      platforms: names of platforms, or None for all.

    Examples:

      >>> from jax.extend import xla

      >>> xla.clear_hlo_module_transformation("fold_my_pattern")  # there was none
      False
    """
    return False


# ---- compiled programs in files


def set_cache_dir(path: Any) -> None:
    """Set the folder for compiled programs (the option `jax_compilation_cache_dir`).

    Examples:

      >>> from jax.experimental.compilation_cache import compilation_cache

      >>> before = jax.config.jax_compilation_cache_dir
      >>> compilation_cache.set_cache_dir("programs")
      >>> jax.config.jax_compilation_cache_dir
      'programs'
      >>> jax.config.update("jax_compilation_cache_dir", before)
    """
    flags.compilation_cache_dir.set(str(path))


def reset_cache() -> None:
    """Read the folder again. It has no copy in memory, so nothing is done.

    Examples:

      >>> from jax.experimental.compilation_cache import compilation_cache

      >>> compilation_cache.reset_cache()  # the folder is read again with every program that is not in memory
    """
