"""Options of devices, compilation and the compilation cache."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from bedrax.core.config import Flag, flag


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def _missing(capability: str) -> str | None:
    """The reason why an option has no effect with the installed jaxlib, or None."""
    from bedrax.xla_backend.door import versions

    return versions.missing(capability)


_GUARD = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_LEVELS = ("UNKNOWN", "O0", "O1", "O2", "O3")

# Devices and memory.
default_device: Final = flag(
    "jax_default_device",
    None,
    "device of arrays that are not placed: a Device, or a platform name",
    kind=object,
    keyed=True,
    check=lambda d: isinstance(d, str) or hasattr(d, "device_kind") or hasattr(d, "device_set"),
)
platforms: Final = flag("jax_platforms", None, "comma-separated platforms to start, most preferred first")
platform_name: Final = flag("jax_platform_name", "", "the default platform (older spelling)")
xla_backend: Final = flag("jax_xla_backend", "", "the default platform (the oldest spelling)")
num_cpu_devices: Final = flag(
    "jax_num_cpu_devices", -1, "the number of CPU devices (-1: one, or the number in XLA_FLAGS)"
)
cpu_collectives_implementation: Final = flag(
    "jax_cpu_collectives_implementation",
    "gloo",
    "how CPUs of several processes reach each other",
    optional=True,
    choices=("gloo", "mpi"),
)
cpu_get_local_topology_timeout_minutes: Final = flag(
    "jax_cpu_get_local_topology_timeout_minutes", 2, "how long to wait for the devices of one process of a run"
)
cpu_get_global_topology_timeout_minutes: Final = flag(
    "jax_cpu_get_global_topology_timeout_minutes", 5, "how long to wait for the devices of all processes of a run"
)
cpu_enable_async_dispatch: Final = flag("jax_cpu_enable_async_dispatch", True, "CPU computations run asynchronously")
transfer_guard: Final = flag(
    "jax_transfer_guard", None, "the reaction to implicit transfers in all directions", choices=_GUARD
)
transfer_guard_host_to_device: Final = flag(
    "jax_transfer_guard_host_to_device", None, "the same, of transfers to devices", choices=_GUARD
)
transfer_guard_device_to_device: Final = flag(
    "jax_transfer_guard_device_to_device", None, "the same, of transfers between devices", choices=_GUARD
)
transfer_guard_device_to_host: Final = flag(
    "jax_transfer_guard_device_to_host", None, "the same, of transfers to the host", choices=_GUARD
)
array_garbage_collection_guard: Final = flag(
    "jax_array_garbage_collection_guard",
    None,
    "what to do when an array is freed by the cycle collector",
    choices=("allow", "log", "fatal"),
)


def _visible(platform: str) -> Flag:
    return flag(
        f"jax_{platform}_visible_devices",
        "all",
        "which devices of its plugin are used: 'all', or numbers by commas",
        kind=object,
        check=lambda text: (
            text == "all" or (isinstance(text, str) and all(n.strip().isdigit() for n in text.split(",")))
        ),
    )


cuda_visible_devices: Final = _visible("cuda")
rocm_visible_devices: Final = _visible("rocm")
oneapi_visible_devices: Final = _visible("oneapi")
visible_devices: Final = {"cuda": cuda_visible_devices, "rocm": rocm_visible_devices, "oneapi": oneapi_visible_devices}
pjrt_client_create_options: Final = flag(
    "jax_pjrt_client_create_options",
    None,
    "more options for the clients of plugins: 'name:value;name:value', or a mapping",
    kind=object,
    check=lambda given: (
        isinstance(given, Mapping) or (isinstance(given, str) and all(":" in o for o in given.split(";")))
    ),
)
sort_devices_by_process_index: Final = flag(
    "jax_sort_devices_by_process_index",
    True,
    "devices are listed process by process; False: as their client lists them",
)
debug_leaked_clients_on_clear_backends: Final = flag(
    "jax_debug_leaked_clients_on_clear_backends", False, "clear_backends raises if something holds on to a client"
)
thread_guard: Final = flag(
    "jax_thread_guard",
    False,
    "in a run of several processes, only the thread that sets this may start computations on devices of more than one",
)

# Compilation and execution.
no_execution: Final = flag("jax_no_execution", False, "running a computation is an error", keyed=True)
log_compiles: Final = flag("jax_log_compiles", False, "log every trace and compilation at WARNING")
embedded_constants_max_bytes: Final = flag(
    "jax_embedded_constants_max_bytes", 32, "larger constants become arguments", keyed=True
)
show_progress: Final = flag("jax_show_progress", True, "a long compilation shows its progress on a terminal")
captured_constants_warn_bytes: Final = flag(
    "jax_captured_constants_warn_bytes",
    2_000_000_000,
    "warn when the constants of a program are larger than this (-1: never)",
)
captured_constants_report_frames: Final = flag(
    "jax_captured_constants_report_frames",
    0,
    "another number: that warning names each constant with the line that uses it first (the frame that is known)",
)
use_shardy_partitioner: Final = flag(
    "jax_use_shardy_partitioner", True, "programs over a mesh are partitioned by Shardy; False: by GSPMD", keyed=True
)
optimization_level: Final = flag(
    "jax_optimization_level", "UNKNOWN", "effort of the compiler", choices=_LEVELS, keyed=True
)
memory_fitting_level: Final = flag(
    "jax_memory_fitting_level", "O2", "effort of the compiler to fit into memory", choices=_LEVELS, keyed=True
)
exec_time_optimization_effort: Final = flag(
    "jax_exec_time_optimization_effort",
    0.0,
    "effort of the compiler for speed, -1 to 1",
    keyed=True,
    inert=lambda: _missing("exec_time_optimization_effort"),
)
memory_fitting_effort: Final = flag(
    "jax_memory_fitting_effort",
    0.0,
    "effort of the compiler for memory, -1 to 1",
    keyed=True,
    inert=lambda: _missing("memory_fitting_effort"),
)
disable_most_optimizations: Final = flag(
    "jax_disable_most_optimizations", False, "compile fast instead of well", keyed=True
)
compiler_enable_remat_pass: Final = flag(
    "jax_compiler_enable_remat_pass", True, "XLA may recompute to save memory", keyed=True
)
xla_profile_version: Final = flag("jax_xla_profile_version", 0, "version of the profile handed to XLA", keyed=True)
dump_ir_to: Final = flag("jax_dump_ir_to", "", "folder that lowered programs are written to")
_DUMPED = {"stablehlo", "jaxpr", "eqn_count_pprof"}
dump_ir_modes: Final = flag(
    "jax_dump_ir_modes",
    "stablehlo",
    "what is written there: some of stablehlo, jaxpr, eqn_count_pprof (operations by line), separated by commas",
    kind=object,
    check=lambda text: isinstance(text, str) and {m.strip() for m in text.split(",")} <= _DUMPED,
)
include_debug_info_in_dumps: Final = flag(
    "jax_include_debug_info_in_dumps", True, "whether the files contain the source lines of operations"
)
hlo_source_file_canonicalization_regex: Final = flag(
    "jax_hlo_source_file_canonicalization_regex",
    None,
    "a regular expression: what it matches is left out of the names of files in locations",
    kind=object,
    check=lambda text: isinstance(text, str) and _is_pattern(text),
)

# The compilation cache on disk.
enable_compilation_cache: Final = flag(
    "jax_enable_compilation_cache", True, "keep compiled programs on disk, from one process to the next"
)
compilation_cache_dir: Final = flag(
    "jax_compilation_cache_dir", None, "folder of the compiled programs (None: one among the user's caches, of 1 GiB)"
)
compilation_cache_max_size: Final = flag(
    "jax_compilation_cache_max_size", -1, "bytes it may hold (-1: unlimited, or 1 GiB for the folder by default)"
)
compilation_cache_include_metadata_in_key: Final = flag(
    "jax_compilation_cache_include_metadata_in_key", False, "source locations are part of the key"
)
compilation_cache_check_contents: Final = flag(
    "jax_compilation_cache_check_contents", False, "a program that is found is compiled, too, and compared"
)
persistent_cache_min_compile_time_secs: Final = flag(
    "jax_persistent_cache_min_compile_time_secs", 0.0, "faster compilations are not kept"
)
persistent_cache_min_entry_size_bytes: Final = flag(
    "jax_persistent_cache_min_entry_size_bytes", 0, "smaller programs are not kept"
)
raise_persistent_cache_errors: Final = flag(
    "jax_raise_persistent_cache_errors", False, "errors of the cache are raised, not warned about"
)

# Eager operations.
first_calls_by_numpy: Final = flag(
    "jax_first_calls_by_numpy", True, "NumPy evaluates first calls of eager operations on the CPU, with equal bits"
)

# Export.
CALLING_CONVENTIONS: Final = range(9, 11)
export_calling_convention_version: Final = flag(
    "jax_export_calling_convention_version",
    CALLING_CONVENTIONS[-1],
    f"calling convention of exported programs, {CALLING_CONVENTIONS[0]} to {CALLING_CONVENTIONS[-1]}",
    choices=tuple(CALLING_CONVENTIONS),
)
