"""Platforms, their clients, and devices.

A platform is "cpu", or the name that a PJRT plugin registers. Plugins are found in the `jax_plugins` namespace
package and among entry points of the group `jax_plugins`. Each registers itself with `register_plugin`.
Clients are made at first use, never at import.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import importlib.util
import os
import pathlib
import pkgutil
import re
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from bedrax.xla_backend import flags, platforms, turns
from bedrax.xla_backend.door import coordination, runtime

_lock = threading.RLock()
_factories: dict[str, tuple[Callable[[], runtime.Client], int]] = {}  # platform -> (make client, priority)
_clients: dict[str, runtime.Client] = {}
_failures: dict[str, str] = {}
_default: runtime.Client | None = None
_discovered = False


def _warn_of_fork() -> None:
    if _clients:
        warnings.warn(
            "the process forks after XLA has started its threads, which the child will not have: a program that runs"
            " there may wait for ever. Start children by multiprocessing's 'spawn' or 'forkserver', or fork first",
            RuntimeWarning,
            stacklevel=2,
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_warn_of_fork)


def _release(phase: str, _: dict, collect: Callable[[], None] = runtime.collect_garbage) -> None:
    if phase == "stop":
        collect()


gc.callbacks.append(_release)  # executables that are freed hold their callbacks until they are collected


class Run(NamedTuple):
    """The run of several processes that this process has joined."""

    client: Any
    process_id: int
    num_processes: int


# Set by `bedrax.processes.distributed` before clients are made: the run, and the accelerators of the host to use.
run: Run | None = None
visible_accelerators: frozenset[int] | None = None

turns.live_arrays.append(lambda: [x for client in _clients.values() for x in client.live_arrays()])

# Functions of a device. They are called before any device is returned to a caller.
before_first_use: list[Callable[[runtime.Device], None]] = []

# Functions that drop references to devices. `clear_backends` calls them.
forget: list[Callable[[], None]] = []


def register_client_factory(platform: str, make: Callable[[], runtime.Client], priority: int = 200) -> None:
    """Register a platform. Of the platforms that start, the one of the highest priority is the default."""
    with _lock:
        _factories[platform] = (make, priority)


def registered() -> set[str]:
    """The names of the platforms that are registered."""
    with _lock:
        return {*_factories}


def register_plugin(
    name: str,
    *,
    priority: int = 400,
    library_path: str | None = None,
    options: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
    c_api: Any = None,
) -> Any:
    """Register a PJRT plugin. The `initialize()` function of a `jax_plugins` module calls this.

    Args:
      name: of the platform.
      priority: see `register_client_factory`.
      library_path: the shared library that implements the PJRT C API, unless `c_api` is given.
      options: for the client, or a function that returns them.
      c_api: a capsule with the API of a statically linked plugin.

    Returns:
      the capsule of the loaded API.
    """
    if library_path is None and c_api is None:
        raise ValueError(f"plugin {name!r}: give library_path or c_api")
    xla_client = runtime.xla_client()
    if not xla_client.pjrt_plugin_loaded(name):
        if library_path is not None:
            c_api = xla_client.load_pjrt_plugin_dynamically(name, library_path)
        else:
            xla_client.load_pjrt_plugin_with_c_api(name, c_api)

    def make():
        if not xla_client.pjrt_plugin_initialized(name):
            xla_client.initialize_pjrt_plugin(name)
        given = options() if callable(options) else options
        given = dict(given or {})
        if run is not None:
            given.update(node_id=run.process_id, num_nodes=run.num_processes)
        if visible_accelerators is not None:
            given["visible_devices"] = sorted(visible_accelerators)
        elif name in flags.visible_devices and (text := flags.visible_devices[name].value) != "all":
            given["visible_devices"] = [int(number) for number in text.split(",")]
        given.update(_parsed_options(flags.pjrt_client_create_options.value or {}))
        return xla_client.make_c_api_client(name, given, run and run.client)

    register_client_factory(name, make, priority)
    return c_api


def _parsed_options(options: str | Mapping[str, Any]) -> dict[str, Any]:
    """Options for a client. A mapping is taken as it is; a string is parsed into integers, floats and booleans."""
    if not isinstance(options, str):
        return dict(options)
    found: dict[str, Any] = {}
    for option in options.split(";"):
        name, _, text = option.partition(":")
        found[name.strip()] = text.strip()
        for read in (int, float, {"true": True, "false": False}.__getitem__):
            with contextlib.suppress(ValueError, KeyError):
                found[name.strip()] = read(text.strip().lower())
                break
    return found


def _make_cpu() -> runtime.Client:
    count = flags.num_cpu_devices.value
    if count < 0:
        found = re.search(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
        count = int(found.group(1)) if found else None
    threads = turns.THREADS_PER_DEVICE * count if count and count > 1 else None
    if run is None:
        return runtime.make_cpu_client(count, flags.cpu_enable_async_dispatch.value, threads)
    # Collectives between processes need the same order of computations in each process: the order of calls.
    return runtime.make_cpu_client(
        count,
        False,
        threads,
        distributed_client=run.client,
        node_id=run.process_id,
        num_nodes=run.num_processes,
        collectives=coordination.cpu_collectives(flags.cpu_collectives_implementation.value or "gloo", run.client),
        get_local_topology_timeout_minutes=flags.cpu_get_local_topology_timeout_minutes.value,
        get_global_topology_timeout_minutes=flags.cpu_get_global_topology_timeout_minutes.value,
    )


register_client_factory("cpu", _make_cpu, priority=0)


def _entry_points(group: str) -> Iterable[Any]:
    """The entry points of a group. Imports `importlib.metadata`, which is large, only if there may be any."""
    finders = [f for f in sys.meta_path if hasattr(f, "find_distributions")]
    if len(finders) < 2 and not any(_may_name(group.encode(), place) for place in sys.path):
        return ()
    import importlib.metadata

    return importlib.metadata.entry_points(group=group)


def _may_name(group: bytes, place: str) -> bool:
    """Whether a distribution in a folder of `sys.path` may list entry points of the group."""
    try:
        infos = [e.path for e in os.scandir(place or ".") if e.name.lower().endswith((".dist-info", "egg-info"))]
    except FileNotFoundError:
        return False
    except OSError:  # for example an archive
        return True
    for info in infos:
        try:
            with open(os.path.join(info, "entry_points.txt"), "rb") as file:
                if group in file.read():
                    return True
        except OSError:
            pass
    return False


def _discover() -> None:
    """Find plugins and call their registration. A plugin that fails is reported and skipped."""
    global _discovered
    if _discovered:
        return
    _discovered = True  # a plugin may ask for clients while it is imported
    try:
        _register_plugins()
    except BaseException:  # an interrupt: the next call looks for all plugins again
        _discovered = False
        raise


def _register_plugins() -> None:
    modules: dict[str, Callable[[], Any]] = {}
    try:
        import jax_plugins

        for found in pkgutil.iter_modules(jax_plugins.__path__, "jax_plugins."):
            modules[found.name] = lambda name=found.name: importlib.import_module(name)
    except ImportError:
        pass
    for entry in _entry_points("jax_plugins"):
        modules.setdefault(entry.value, entry.load)
    for name, load in modules.items():
        try:
            register = _OWN_REGISTRATION.get(name.rpartition(".")[2])
            if register is not None:
                register(name)
                continue
            module = load()
            if hasattr(module, "initialize"):
                module.initialize()
        except Exception as error:
            _failures[name] = f"{type(error).__name__}: {error}"


def _register_cuda(name: str) -> None:
    """Register NVIDIA's plugin: its library, and the kernels and types of the same distribution.

    Its Python module is not imported, because it imports internals of another implementation. The library finds CUDA's
    libraries by itself.
    """
    xla_client = runtime.xla_client()
    (folder,) = importlib.util.find_spec(name).submodule_search_locations
    library = pathlib.Path(folder) / "xla_cuda_plugin.so"
    if not library.exists():
        raise FileNotFoundError(f"{library} is missing from the CUDA plugin")
    extension = runtime.plugin_extension("cuda", "cuda_plugin_extension")
    if extension is None:
        raise ImportError(
            f"the package {name.replace('jax_plugins.xla_', 'jax-')}-plugin, of the version of jaxlib, is missing next to"
            f" {library}"
        )
    c_api = register_plugin(
        "cuda", priority=500, library_path=str(library), options=xla_client.generate_pjrt_gpu_plugin_options
    )
    xla_client.register_custom_call_handler("CUDA", functools.partial(extension.register_custom_call_target, c_api))
    xla_client.register_custom_type_handler("CUDA", functools.partial(extension.register_custom_type, c_api))
    for type_name, registration in extension.ffi_types().items():
        xla_client.register_custom_type(type_name, registration, platform="CUDA")
    for target, handler in extension.ffi_handlers().items():
        xla_client.register_custom_call_target(target, handler, platform="CUDA", api_version=1)


_OWN_REGISTRATION: dict[str, Callable[[str], None]] = {"xla_cuda12": _register_cuda, "xla_cuda13": _register_cuda}


def describing(platform: str) -> bool:
    """Whether a plugin can describe devices of a platform. It is loaded and initialized, and no client is started.

    For "tpu", that is the library of the package `libtpu`, or the one that the environment variable TPU_LIBRARY_PATH
    names.
    """
    with _lock:
        _discover()
        xla_client = runtime.xla_client()
        if not xla_client.pjrt_plugin_loaded(platform):
            library = _tpu_library() if platform == "tpu" else None
            if library is None:
                return False
            xla_client.load_pjrt_plugin_dynamically(platform, library)
        if not xla_client.pjrt_plugin_initialized(platform):
            xla_client.initialize_pjrt_plugin(platform)
    return True


def _tpu_library() -> str | None:
    """The path of the library for TPUs, or None."""
    if path := os.environ.get("TPU_LIBRARY_PATH"):
        return path
    found = importlib.util.find_spec("libtpu")
    folders = [] if found is None else found.submodule_search_locations or []
    return next((str(p) for folder in folders if (p := pathlib.Path(folder, "libtpu.so")).exists()), None)


def _wanted() -> list[str] | None:
    text = flags.platforms.value or flags.platform_name.value or flags.xla_backend.value
    if not text:
        return None
    names: list[str] = []
    for name in text.split(","):
        names.extend(n for n in platforms.members(name) if n not in names)
    return names


def backends() -> dict[str, runtime.Client]:
    """The client of every platform that started, by platform name.

    Examples:

      >>> from jax.extend import backend

      >>> clients = backend.backends()
      >>> clients["cpu"].platform, clients["cpu"] is backend.get_backend("cpu")
      ('cpu', True)
    """
    global _default
    if _clients:
        return _clients
    with _lock:
        if _clients:
            return _clients
        _start_clients()
        return _clients


def _start_clients() -> None:
    global _default
    wanted = _wanted()
    if wanted != ["cpu"]:
        _discover()
    if wanted is None:
        order = sorted(_factories, key=lambda name: -_factories[name][1])
    else:
        order = [name for name in wanted if name in _factories]
        unknown = [n for n in wanted if n not in _factories and platforms.of(n).family != "gpu"]
        if unknown:
            raise RuntimeError(
                f"Unknown backend: {unknown[0]!r}, requested by jax_platforms={','.join(wanted)!r}."
                f" Known are {sorted(_factories)}{_failure_text()}"
            )
        if not order:
            raise RuntimeError(f"No backend of jax_platforms={','.join(wanted)!r} is installed{_failure_text()}")
    started: dict[str, runtime.Client] = {}
    for name in order:
        make, _ = _factories[name]
        try:
            client = make()
            if client.device_count() == 0:
                raise RuntimeError("the client has no devices")
        except Exception as error:
            _failures[name] = f"{type(error).__name__}: {error}"
            if wanted is not None or name == "cpu":
                raise RuntimeError(
                    f"the backend {name!r} did not start: {error}. Leave JAX_PLATFORMS unset to take the best"
                    " one that starts."
                ) from error
            continue
        started[name] = client
    if wanted is None and set(started) == {"cpu"} and os.path.exists("/dev/nvidia0"):
        warnings.warn(
            "this machine seems to have an NVIDIA GPU, but programs run on the CPU: "
            + (_failure_text()[2:] if _failures else "no CUDA plugin of jaxlib is installed"),
            stacklevel=3,
        )
    device = next(iter(started.values())).local_devices()[0]
    for prepare in before_first_use:
        prepare(device)
    _default = started[next(name for name in order if name in started)]
    _clients.update(started)
    flags.num_cpu_devices.settled = "the devices exist already; set it before the first array or question about them"


def _failure_text() -> str:
    if not _failures:
        return "."
    return "; failed to load: " + "; ".join(f"{name} ({why})" for name, why in _failures.items())


def unused() -> dict[str, str]:
    """The platforms and plugins that are installed and not used: name -> the reason.

    Clients are started if none has. `backends` raises an error if that fails; the reasons are known after that, too.
    """
    wanted = _wanted()
    reasons = {
        name: f"jax_platforms is {','.join(wanted)!r}"
        for name in _factories
        if wanted is not None and name not in wanted
    }
    return {**reasons, **_failures}


def backends_are_initialized() -> bool:
    """Whether a client has started. Options that select platforms and numbers of devices have no effect after that."""
    return bool(_clients)


def clear_backends() -> None:
    """Forget every client and every compiled program. Arrays on their devices must not be used any more.

    Raises:
      RuntimeError: a client is still referenced, and `jax_debug_leaked_clients_on_clear_backends` is set.
        The meshes of programs that are held count as references.

    Examples:

      >>> from jax.extend import backend

      >>> import subprocess, sys
      >>> program = '''
      ... from jax.extend import backend
      ... before = backend.get_backend()
      ... backend.clear_backends()  # the next operation starts a client again
      ... print(backend.get_backend() is before, backend.get_backend().platform)
      ... '''
      >>> out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
      >>> print(out.stdout)
      False cpu
    """
    global _default
    with _lock:
        alive = [weakref.ref(client) for client in _clients.values()]
        for drop in forget:
            drop()
        _clients.clear()
        flags.num_cpu_devices.settled = None
        _failures.clear()
        _default = None
        runtime.PjitFunctionCache.clear_all()
    if flags.debug_leaked_clients_on_clear_backends.value:
        for _ in range(3):  # jaxlib frees later the members of collected objects
            gc.collect()
            runtime.collect_garbage()
        if held := [client.platform for ref in alive if (client := ref()) is not None]:
            raise RuntimeError(
                f"clear_backends: something holds on to the clients of {held}: arrays, devices or programs"
            )


def get_backend(platform: str | runtime.Client | None = None) -> runtime.Client:
    """The client of a platform (``None``: the default platform).

    Raises:
      RuntimeError: no such platform has started.

    Examples:

      >>> from jax.extend import backend

      >>> client = backend.get_backend("cpu")
      >>> client.platform, client.device_count() == jax.device_count("cpu")
      ('cpu', True)
      >>> backend.get_backend("toaster")
      Traceback (most recent call last):
        ...
      RuntimeError: Unknown backend 'toaster'; this process has ...
    """
    if platform is None:
        if _default is None:
            backends()
        return _default  # type: ignore[return-value]
    if not isinstance(platform, str):
        return platform
    clients = backends()
    for name in (platform, *platforms.members(platform)):
        if name in clients:
            return clients[name]
    if platforms.members(platform) != (platform,):
        raise RuntimeError(
            f"Unknown backend: {platform!r} stands for {' or '.join(platforms.members(platform))}, and this process has only"
            f" {', '.join(clients)}{_failure_text()}"
        )
    raise RuntimeError(f"Unknown backend {platform!r}; this process has {', '.join(clients)}{_failure_text()}")


def default_backend() -> str:
    """Name of the default platform: ``"cpu"``, ``"gpu"``, ``"tpu"``.

    Examples:

      >>> jax.default_backend() in {device.platform for device in jax.devices()}
      True
    """
    return get_backend(None).platform


def devices(backend: str | None = None) -> list[runtime.Device]:
    """All devices of a platform (by default the default platform), also those of other processes.

    Examples:

      >>> jax.devices()[0].process_index
      0
    """
    found = get_backend(backend).devices()
    return sorted(found, key=lambda d: (d.process_index, d.id)) if flags.sort_devices_by_process_index.value else found


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[runtime.Device]:
    """The devices of one process.

    Args:
      process_index: the process. Default: this process.
      backend: the platform. Default: the default platform.
      host_id: an older name of `process_index`.

    Raises:
      ValueError: there is no such process.

    Examples:

      >>> len(jax.local_devices()) <= len(jax.devices())
      True
    """
    if host_id is not None:
        warnings.warn("local_devices: host_id is called process_index now; use that", UserWarning, stacklevel=2)
        process_index = host_id
    client = get_backend(backend)
    index = client.process_index() if process_index is None else process_index
    if not 0 <= index < process_count(backend):
        raise ValueError(f"Unknown process_index {index}")
    return [d for d in client.devices() if d.process_index == index]


def device_count(backend: str | None = None) -> int:
    """Number of devices of a platform.

    Examples:

      >>> jax.device_count() == len(jax.devices())
      True
    """
    return int(get_backend(backend).device_count())


def local_device_count(backend: str | None = None) -> int:
    """Number of devices of a platform in this process.

    Examples:

      >>> jax.local_device_count() == len(jax.local_devices())
      True
    """
    return int(get_backend(backend).local_device_count())


def process_index(backend: str | None = None) -> int:
    """Index of this process.

    Examples:

      >>> jax.process_index()
      0
    """
    return get_backend(backend).process_index()


def process_count(backend: str | None = None) -> int:
    """Number of processes.

    Examples:

      >>> jax.process_count()
      1
    """
    return max(d.process_index for d in devices(backend)) + 1


def process_indices(backend: str | None = None) -> list[int]:
    """Indices of all processes.

    Examples:

      >>> list(jax.process_indices())
      [0]
    """
    return list(range(process_count(backend)))


def default_device() -> runtime.Device:
    """The device of uncommitted arrays: `jax.config.jax_default_device`, or the first local device.

    Examples:

      >>> from jax.extend import backend

      >>> backend.get_default_device() == jnp.arange(3).device
      True
      >>> last = jax.devices("cpu")[-1]
      >>> with jax.default_device(last):
      ...     print(backend.get_default_device() == last)
      True
    """
    chosen = flags.default_device.value
    if chosen is None:
        return get_backend(None).local_devices()[0]
    if isinstance(chosen, str):
        return get_backend(chosen).local_devices()[0]
    return chosen


def is_initialized() -> bool:
    """Whether clients have been made."""
    return bool(_clients)


def host_id(backend: str | None = None) -> int:
    """Older spelling of `process_index`.

    Examples:

      >>> jax.host_id()
      0
    """
    return process_index(backend)


def host_ids(backend: str | None = None) -> list[int]:
    """Older spelling of `process_indices`.

    Examples:

      >>> list(jax.host_ids())
      [0]
    """
    return process_indices(backend)


def host_count(backend: str | None = None) -> int:
    """Older spelling of `process_count`.

    Examples:

      >>> jax.host_count()
      1
    """
    return process_count(backend)


def live_arrays(platform: str | None = None) -> list[Any]:
    """Every array that is alive on a platform's devices.

    Examples:

      >>> x = jnp.arange(3)
      >>> any(x is y for y in jax.live_arrays())
      True
    """
    return get_backend(platform).live_arrays()
