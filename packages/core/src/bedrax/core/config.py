"""Options of the system: what users know as `jax.config`.

Every option is one `Flag`, declared once, in the list below: its name, default, kind, meaning, and whether it
belongs to the *trace context*, the key under which traced and compiled programs are cached. A flag has a global
value (from the environment, `config.update`, or absl) and may be overridden in the current thread:

    with enable_x64(True): ...

Inside Bedrax, options are read as `enable_x64.value`; users read `config.jax_enable_x64`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import warnings
from collections.abc import Callable, Hashable, Iterator
from typing import Any


class _Unset:
    __slots__ = ()

    def __repr__(self) -> str:
        return "<unset>"


UNSET: Any = _Unset()


class TraceContext(tuple):
    """The values of all keyed flags in one thread.

    There is only one object per combination of values, so hashing and comparing are by identity.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other


class _ThreadState(threading.local):
    context: TraceContext | None = None
    epoch: int = -1

    def __init__(self) -> None:
        self.overrides: dict[str, Any] = {}


_flags: dict[str, Flag] = {}
_keyed: list[Flag] = []
_listeners: list[Callable[[str, Flag], None]] = []
_contexts: dict[tuple, TraceContext] = {}
_thread = _ThreadState()
_lock = threading.RLock()
_epoch = 0  # counts changes of global values of keyed flags


_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
_FALSE = frozenset({"0", "false", "f", "no", "n", "off", ""})


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"expected one of true, false, 1, 0, yes, no, on, off, got {text!r}")


_PARSERS: dict[type, Callable[[str], Any]] = {
    bool: _parse_bool,
    int: int,
    float: float,
    str: str,
    object: str,
}


class Flag:
    """One option. Calling it, `flag(value)`, gives a context manager that overrides it in this thread.

    Attributes:
      name: as in `config.update(name, value)`; the environment variable is the name in capitals.
      kind: bool, int, float, str, or object (any hashable value).
      choices: the values a str flag is restricted to, or None.
      keyed: whether it is part of the trace context.
      inert: if not None, why this flag is accepted but changes nothing here.
    """

    __slots__ = ("name", "default", "kind", "choices", "optional", "keyed", "help", "inert", "check", "_global",
                 "_overrides", "__name__")  # fmt: skip

    def __init__(self, name: str, default: Any, help: str, *, kind: type | None = None, choices: tuple = (),
                 optional: bool | None = None, keyed: bool = False, inert: str | None = None,
                 check: Callable[[Any], bool] | None = None):  # fmt: skip
        self.name = name
        self.default = default
        self.kind = kind or (str if default is None else type(default))
        self.choices = choices or None
        self.optional = default is None if optional is None else optional
        self.keyed = keyed
        self.help = help
        self.inert = inert
        self.check = check
        self._overrides = 0  # how many threads have a value of their own
        self.__name__ = name.removeprefix("jax_")
        self._global = default
        text = os.environ.get(self.env)
        if text is not None:
            self._global = self._from_text(text, f"the environment variable {self.env}")

    @property
    def env(self) -> str:
        """Name of the environment variable that sets the initial value."""
        return self.name.upper()

    @property
    def value(self) -> Any:
        """The value in force in this thread."""
        if self._overrides:
            value = _thread.overrides.get(self.name, UNSET)
            if value is not UNSET:
                return value
        return self._global

    @property
    def global_value(self) -> Any:
        """The value of threads that do not override it."""
        return self._global

    @property
    def local_value(self) -> Any:
        """This thread's override, or `UNSET`."""
        return _thread.overrides.get(self.name, UNSET)

    def set(self, value: Any) -> None:
        """Change the global value."""
        global _epoch
        value = self.validate(value)
        if self.inert is not None and value != self.default:
            warnings.warn(f"{self.name} has no effect: {self.inert}", UserWarning, stacklevel=3)
        with _lock:
            self._global = value
            if self.keyed:
                _epoch += 1
        _notify(self)

    def set_local(self, value: Any) -> None:
        """Change the value in this thread only; `UNSET` ends that."""
        overrides = _thread.overrides
        with _lock:  # how many threads override it
            self._overrides += (value is not UNSET) - (self.name in overrides)
        if value is UNSET:
            overrides.pop(self.name, None)
        else:
            overrides[self.name] = value
        if self.keyed:
            _thread.epoch = -1
        _notify(self)

    def __call__(self, value: Any = UNSET, /, **kwargs: Any) -> contextlib.AbstractContextManager:
        if value is UNSET and len(kwargs) == 1 and "new_val" in kwargs:
            value = kwargs.pop("new_val")
        if kwargs:
            raise TypeError(f"{self.__name__}() takes one argument, the new value, got {sorted(kwargs)}")
        if value is UNSET:
            if self.kind is not bool:
                raise TypeError(
                    f"{self.__name__}() needs the value that {self.name} should have inside the with block"
                )
            value = True
        return _Override(self, self.validate(value))

    def validate(self, value: Any) -> Any:
        """`value` in the flag's type; ValueError if it is not one of this flag's values."""
        if value is None:
            if self.optional:
                return None
        elif self.kind is bool:
            if type(value) is bool:
                return value
            if isinstance(value, str):
                with contextlib.suppress(ValueError):
                    return _parse_bool(value)
            elif type(value).__name__ in ("bool", "bool_") or (type(value) is int and value in (0, 1)):
                return bool(value)
        elif self.choices is not None:
            value = getattr(value, "value", value)  # a member of an enum names its value
            if value in self.choices:
                return value
            lowered = value.lower() if isinstance(value, str) else value
            if lowered in self.choices:
                return lowered
        elif self.kind is object:
            if self.check is None or self.check(value):
                return value
        elif isinstance(value, self.kind) and not isinstance(value, bool):
            return value
        elif self.kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        elif self.kind is int and hasattr(value, "__index__") and not isinstance(value, bool):
            return value.__index__()
        raise ValueError(
            f"{self.name} must be {self._expected()}, got {value!r} of type {type(value).__name__}"
        )

    def _expected(self) -> str:
        if self.choices is not None:
            what = "one of " + ", ".join(map(repr, self.choices))
        else:
            what = {object: f"valid ({self.help})", bool: "True or False"}.get(
                self.kind, f"a {self.kind.__name__}"
            )
        return what + (" or None" if self.optional else "")

    def _from_text(self, text: str, origin: str) -> Any:
        if self.optional and text == "":
            return None
        try:
            return self.validate(_PARSERS[self.kind](text))
        except ValueError as e:
            raise ValueError(
                f"{origin} has a bad value: {self.name} must be {self._expected()}, got {text!r}"
            ) from e

    def __bool__(self) -> bool:
        raise TypeError(
            f"the flag {self.__name__} is not its value: read {self.__name__}.value or config.{self.name}"
        )

    def __repr__(self) -> str:
        return f"<flag {self.name}={self.value!r}>"


class _Override(contextlib.ContextDecorator):
    """Override of one flag in one thread; can be entered again while active, and used as a decorator."""

    __slots__ = ("flag", "value", "saved")

    def __init__(self, flag: Flag, value: Any):
        self.flag = flag
        self.value = value
        self.saved: list[Any] = []

    def _recreate_cm(self) -> _Override:
        return _Override(self.flag, self.value)

    def __enter__(self) -> None:
        flag = self.flag
        if flag.inert is not None and self.value != flag.default:
            warnings.warn(f"{flag.name} has no effect: {flag.inert}", UserWarning, stacklevel=2)
        self.saved.append(flag.local_value)
        flag.set_local(self.value)

    def __exit__(self, *exc_info: object) -> None:
        self.flag.set_local(self.saved.pop())


def _keyed_values() -> tuple:
    return tuple([flag.value for flag in _keyed])


def trace_context() -> TraceContext:
    """The values of all keyed flags in this thread: one interned tuple, compared and hashed by identity."""
    thread = _thread
    if thread.epoch == _epoch:
        return thread.context  # type: ignore[return-value]
    return _compute_trace_context(thread)


def _compute_trace_context(thread: _ThreadState) -> TraceContext:
    with _lock:
        values = _keyed_values()
        context = _contexts.get(values)
        if context is None:
            context = _contexts[values] = TraceContext(values)
        thread.context, thread.epoch = context, _epoch
    return context


def keyed_flags() -> tuple[Flag, ...]:
    """The flags of the trace context, in its order."""
    return tuple(_keyed)


def on_change(callback: Callable[[str, Flag], None]) -> Callable[[str, Flag], None]:
    """Call `callback(name, flag)` after each change of a flag, global or of a thread, in the changing thread.

    It reads `flag.global_value` and `flag.local_value` as it needs. Returns `callback`: usable as a decorator.
    """
    _listeners.append(callback)
    return callback


def _notify(flag: Flag) -> None:
    for callback in _listeners:
        callback(flag.name, flag)


def flag(name: str, default: Any, help: str, **options: Any) -> Flag:
    """Declare a flag. Packages above core declare theirs with this too (`keyed` ones at import)."""
    global _epoch
    if name in _flags:
        raise ValueError(f"the flag {name} is declared already")
    new = Flag(name, default, help, **options)
    with _lock:
        _flags[name] = new
        if new.keyed:
            _keyed.append(new)
            _epoch += 1
    return new


_contexts_of_users = itertools.count()


def make_user_context(default_value: Hashable = None) -> Any:
    """A value that functions may depend on: they are traced again where it is another one.

    Returns:
      an object with `value`, and ``context(value)``, a context manager that sets it in this thread.
    """
    return flag(
        f"bedrax_user_context_{next(_contexts_of_users)}",
        default_value,
        "a user's context",
        kind=object,
        optional=True,
        keyed=True,
    )


class Config:
    """What users know as `jax.config`: `config.update("jax_enable_x64", True)`, `config.jax_enable_x64`."""

    def update(self, name: str, value: Any) -> None:
        """Set the option `name` for all threads.

        Raises:
          AttributeError: there is no such option.
          ValueError: the option cannot have this value.
        """
        flag = _flags.get(name)
        if flag is None:
            raise AttributeError(f"Unrecognized config option: {name}{_suggestion(name)}")
        flag.set(value)

    def read(self, name: str) -> Any:
        """The value of option `name` in this thread."""
        return getattr(self, name)

    def __getattr__(self, name: str) -> Any:
        flag = _flags.get(name)
        if flag is None:
            raise AttributeError(f"Unrecognized config option: {name}{_suggestion(name)}")
        return flag.value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"options are set by a call: config.update({name!r}, {value!r})")

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *_flags])

    @property
    def values(self) -> dict[str, Any]:
        """All options with their values in this thread."""
        return {name: flag.value for name, flag in _flags.items()}

    @property
    def x64_enabled(self) -> bool:
        return enable_x64.value

    def config_with_absl(self) -> None:
        """Declare every option as an absl flag, read back when absl has parsed the command line."""
        from absl import app, flags

        kinds = {bool: flags.DEFINE_bool, int: flags.DEFINE_integer, float: flags.DEFINE_float}
        declared = False
        for flag in _flags.values():
            if flag.name in flags.FLAGS:
                continue
            declared = True
            if flag.choices is not None:
                flags.DEFINE_enum(flag.name, flag.global_value, list(flag.choices), flag.help)
            elif flag.kind is object:  # objects have no spelling on a command line, their names do
                default = flag.global_value
                flags.DEFINE_string(flag.name, default if isinstance(default, str) else None, flag.help)
            else:
                kinds.get(flag.kind, flags.DEFINE_string)(flag.name, flag.global_value, flag.help)
        if declared:
            app.call_after_init(self.complete_absl_config)

    def complete_absl_config(self) -> None:
        """Take over the options that were given on the command line."""
        from absl import flags

        for flag in _flags.values():
            if flag.name in flags.FLAGS and flags.FLAGS[flag.name].present:
                flag.set(flags.FLAGS[flag.name].value)

    def parse_flags_with_absl(self) -> None:
        """Read options such as `--jax_enable_x64` from the command line now, with absl.

        Arguments that are no options are left for others.
        """
        from absl import flags

        self.config_with_absl()
        flags.FLAGS(sys.argv, known_only=True)
        self.complete_absl_config()


def _suggestion(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, _flags, 1)
    return f" (did you mean {near[0]}?)" if near else ""


config = Config()


@contextlib.contextmanager
def overriding(**values: Any) -> Iterator[None]:
    """Override several flags in this thread: `overriding(jax_enable_x64=True, jax_debug_nans=True)`."""
    with contextlib.ExitStack() as stack:
        for name, value in values.items():
            stack.enter_context(_flags[name](value))
        yield


# ---- The flags -------------------------------------------------------------------------------------------------

_GUARD = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_NO_PALLAS = "there are no Pallas kernels here"
_ONE_WAY = "there is only one implementation here"

# Types and numerics.
enable_x64 = flag(
    "jax_enable_x64", False, "64-bit types are kept; otherwise they become 32-bit types", keyed=True
)
explicit_x64_dtypes = flag(
    "jax_explicit_x64_dtypes", "warn", "what to do when a 64-bit type is asked for by name while x64 is off",
    choices=("warn", "error", "allow"), keyed=True)  # fmt: skip
numpy_dtype_promotion = flag(
    "jax_numpy_dtype_promotion", "standard", "'strict': only equal types and Python scalars combine implicitly",
    choices=("standard", "strict"), keyed=True)  # fmt: skip
numpy_rank_promotion = flag(
    "jax_numpy_rank_promotion", "allow", "what to do when NumPy broadcasting joins arrays of different ranks",
    choices=("allow", "warn", "raise"), keyed=True)  # fmt: skip
default_matmul_precision = flag(
    "jax_default_matmul_precision", None, "precision of products and convolutions that do not name theirs",
    choices=("default", "high", "highest", "bfloat16", "tensorfloat32", "float32", "ANY_F8_ANY_F8_F32",
             "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16",
             "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6",
             "BF16_BF16_F32_X9", "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64"),
    keyed=True)  # fmt: skip
allow_f16_reductions = flag(
    "jax_allow_f16_reductions", True, "sums of 16-bit floats may be all in 16 bits", keyed=True
)
softmax_custom_jvp = flag(
    "jax_softmax_custom_jvp", False, "softmax has a derivative rule of its own", keyed=True
)
high_dynamic_range_gumbel = flag(
    "jax_high_dynamic_range_gumbel", False, "Gumbel samples with more bits in their tails", keyed=True)  # fmt: skip
check_static_indices = flag(
    "jax_check_static_indices", False, "a constant index out of bounds is an error", keyed=True)  # fmt: skip

# Random numbers.
default_prng_impl = flag(
    "jax_default_prng_impl", "threefry2x32", "implementation of keys that do not name theirs",
    choices=("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32"), keyed=True)  # fmt: skip
enable_custom_prng = flag("jax_enable_custom_prng", False, "PRNGKey makes typed keys", keyed=True)
legacy_prng_key = flag(
    "jax_legacy_prng_key", "allow", "what to do when an untyped uint32 key is used", choices=("allow", "warn", "error"),
    keyed=True)  # fmt: skip
threefry_partitionable = flag(
    "jax_threefry_partitionable", True, "threefry bits do not depend on how the array is sharded",
    keyed=True)  # fmt: skip
threefry_gpu_kernel_lowering = flag(
    "jax_threefry_gpu_kernel_lowering", False, "use a GPU kernel for threefry", inert=_ONE_WAY)  # fmt: skip
random_seed_offset = flag("jax_random_seed_offset", 0, "added to every seed", keyed=True)
debug_key_reuse = flag("jax_debug_key_reuse", False, "using a key twice is an error", keyed=True)

# Debugging.
debug_nans = flag(
    "jax_debug_nans", False, "an operation that makes a NaN raises FloatingPointError", keyed=True
)
debug_infs = flag(
    "jax_debug_infs", False, "an operation that makes an infinity raises FloatingPointError", keyed=True
)
disable_jit = flag("jax_disable_jit", False, "jit runs its function op by op", keyed=True)
check_tracer_leaks = flag(
    "jax_check_tracer_leaks", False, "an error when a tracer outlives its trace", keyed=True
)
enable_checks = flag(
    "jax_enable_checks", False, "check internal invariants: every jaxpr is type checked", keyed=True
)
log_compiles = flag("jax_log_compiles", False, "log every trace and compilation at WARNING")
explain_cache_misses = flag("jax_explain_cache_misses", False, "log why a jit cache was missed")
log_checkpoint_residuals = flag("jax_log_checkpoint_residuals", False, "log what jax.checkpoint saves")
no_tracing = flag("jax_no_tracing", False, "tracing for jit is an error")
no_execution = flag("jax_no_execution", False, "running a computation is an error")
traceback_filtering = flag(
    "jax_traceback_filtering", "auto", "how our frames are taken out of tracebacks",
    choices=("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"))  # fmt: skip
tracer_error_num_traceback_frames = flag(
    "jax_tracer_error_num_traceback_frames", 5, "how many frames a leaked-tracer error shows")  # fmt: skip
error_checking_behavior_nan = flag(
    "jax_error_checking_behavior_nan", "ignore", "what error_checking does about NaNs", choices=("ignore", "raise"),
    keyed=True)  # fmt: skip
error_checking_behavior_divide = flag(
    "jax_error_checking_behavior_divide", "ignore", "what error_checking does about division by zero",
    choices=("ignore", "raise"), keyed=True)  # fmt: skip
error_checking_behavior_oob = flag(
    "jax_error_checking_behavior_oob", "ignore", "what error_checking does about indices out of bounds",
    choices=("ignore", "raise"), keyed=True)  # fmt: skip
debug_log_modules = flag("jax_debug_log_modules", "", "comma-separated modules whose DEBUG log is shown")
logging_level = flag(
    "jax_logging_level", "NOTSET", "level of our loggers",
    choices=("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))  # fmt: skip
pprint_use_color = flag("jax_pprint_use_color", True, "print jaxprs in color on terminals")
captured_constants_warn_bytes = flag(
    "jax_captured_constants_warn_bytes",
    2_000_000_000, "warn when constants captured by a program exceed this (-1: never)")  # fmt: skip
captured_constants_report_frames = flag(
    "jax_captured_constants_report_frames", 0, "frames shown per captured constant (-1: all)")  # fmt: skip
thread_guard = flag("jax_thread_guard", False, "running computations from several threads is an error")
send_traceback_to_runtime = flag(
    "jax_send_traceback_to_runtime", "off", "attach the Python traceback to runtime errors", choices=("off", "on",
    "full"))  # fmt: skip
experimental_unsafe_xla_runtime_errors = flag(
    "jax_experimental_unsafe_xla_runtime_errors", False, "errors raised by compiled programs reach Python")  # fmt: skip

# Tracing and transformations.
use_direct_linearize = flag(
    "jax_use_direct_linearize", True, "linearize by one pass over the program", inert=_ONE_WAY
)
use_simplified_jaxpr_constants = flag(
    "jax_use_simplified_jaxpr_constants", False, "constants inside jaxprs", inert=_ONE_WAY
)
embedded_constants_max_bytes = flag(
    "jax_embedded_constants_max_bytes", 32, "larger constants become arguments", keyed=True
)
eager_constant_folding = flag("eager_constant_folding", False, "fold constants while tracing", keyed=True)
check_vma = flag("check_vma", False, "check which mesh axes shard_map values vary over", keyed=True)
auto_pcast = flag(
    "jax_auto_pcast", True, "insert casts between varying and invariant values in shard_map", keyed=True
)
remove_size_one_mesh_axis_from_type = flag(
    "jax_remove_size_one_mesh_axis_from_type", False, "mesh axes of size one do not appear in types",
    keyed=True)  # fmt: skip
disable_vmap_shmap_error = flag(
    "jax_disable_vmap_shmap_error", False, "allow vmap over shard_map with spmd_axis_name", keyed=True
)
disallow_mesh_context_manager = flag("jax_disallow_mesh_context_manager", False, "`with mesh:` is an error")
mutable_array_checks = flag("jax_mutable_array_checks", True, "check that refs are not aliased", keyed=True)
disable_bwd_checks = flag(
    "jax_disable_bwd_checks", False, "do not check results of custom_vjp backward functions", keyed=True
)
scan3 = flag("jax_scan3", False, "an alternative scan", inert=_ONE_WAY)
remat3 = flag("jax_remat3", False, "an alternative checkpoint", inert=_ONE_WAY)
custom_vjp3 = flag("jax_custom_vjp3", False, "an alternative custom_vjp", inert=_ONE_WAY)
refs_to_pins = flag("jax_refs_to_pins", False, "lower refs as pinned buffers", inert=_ONE_WAY)
use_emit_pipeline_primitive = flag(
    "jax_use_emit_pipeline_primitive", False, "pipelines as a primitive", inert=_NO_PALLAS
)

# Devices and memory.
default_device = flag(
    "jax_default_device", None, "device of arrays that are not placed: a Device, or a platform name", kind=object,
    keyed=True, check=lambda d: isinstance(d, str) or hasattr(d, "device_kind") or hasattr(d, "device_set"))  # fmt: skip
platforms = flag("jax_platforms", None, "comma-separated platforms to start, most preferred first")
platform_name = flag("jax_platform_name", "", "the default platform (older spelling)")
xla_backend = flag("jax_xla_backend", "", "name of the XLA backend (older spelling)")
backend_target = flag("jax_backend_target", "", "address of a remote backend")
pjrt_client_create_options = flag(
    "jax_pjrt_client_create_options", None, "key:value;key:value options, or a dict, for making the PJRT client",
    kind=object, check=lambda v: isinstance(v, (str, dict)))  # fmt: skip
num_cpu_devices = flag(
    "jax_num_cpu_devices", -1, "how many CPU devices to make (-1: one, or as XLA_FLAGS says)"
)
cpu_enable_async_dispatch = flag("jax_cpu_enable_async_dispatch", True, "CPU computations run asynchronously")
cpu_collectives_implementation = flag(
    "jax_cpu_collectives_implementation", "gloo", "collectives between CPU processes", optional=True,
    choices=("gloo", "mpi", "megascale"))  # fmt: skip
cpu_get_local_topology_timeout_minutes = flag(
    "jax_cpu_get_local_topology_timeout_minutes", 2, "minutes to wait for this host's topology"
)
cpu_get_global_topology_timeout_minutes = flag(
    "jax_cpu_get_global_topology_timeout_minutes", 5, "minutes to wait for all hosts' topology"
)
cuda_visible_devices = flag("jax_cuda_visible_devices", "all", "comma-separated CUDA device numbers")
rocm_visible_devices = flag("jax_rocm_visible_devices", "all", "comma-separated ROCm device numbers")
oneapi_visible_devices = flag("jax_oneapi_visible_devices", "all", "comma-separated oneAPI device numbers")
mock_num_gpu_processes = flag("mock_num_gpu_processes", 0, "pretend this many GPU processes")
mock_gpu_topology = flag("jax_mock_gpu_topology", "", "pretend this GPU topology")
sort_devices_by_process_index = flag(
    "jax_sort_devices_by_process_index", True, "jax.devices() is sorted by process"
)
transfer_guard = flag(
    "jax_transfer_guard", None, "what to do about implicit transfers, all directions", choices=_GUARD
)
transfer_guard_host_to_device = flag(
    "jax_transfer_guard_host_to_device", None, "transfers to devices", choices=_GUARD
)
transfer_guard_device_to_device = flag(
    "jax_transfer_guard_device_to_device", None, "transfers between devices", choices=_GUARD
)
transfer_guard_device_to_host = flag(
    "jax_transfer_guard_device_to_host", None, "transfers to the host", choices=_GUARD
)
array_garbage_collection_guard = flag(
    "jax_array_garbage_collection_guard", None, "what to do when an array is freed by the cycle collector",
    choices=("allow", "log", "fatal"))  # fmt: skip
debug_leaked_clients_on_clear_backends = flag(
    "jax_debug_leaked_clients_on_clear_backends", False, "an error when clients survive clear_backends")  # fmt: skip
force_dcn_cross_host_transfers = flag(
    "jax_force_dcn_cross_host_transfers", False, "transfers between hosts over DCN"
)
cross_host_transfer_socket_address = flag(
    "jax_cross_host_transfer_socket_address", "", "address of the transfer server"
)
cross_host_transport_addresses = flag("jax_cross_host_transport_addresses", "", "addresses of the transports")
cross_host_transfer_timeout_seconds = flag(
    "jax_cross_host_transfer_timeout_seconds", None, "seconds to wait", kind=int
)
cross_host_transfer_transfer_size = flag(
    "jax_cross_host_transfer_transfer_size", None, "bytes per chunk", kind=int
)

# Compilation.
optimization_level = flag(
    "jax_optimization_level", "UNKNOWN", "optimization level of the compiler",
    choices=("UNKNOWN", "O0", "O1", "O2", "O3"), keyed=True)  # fmt: skip
memory_fitting_level = flag(
    "jax_memory_fitting_level", "O2", "effort of the compiler to fit into memory",
    choices=("UNKNOWN", "O0", "O1", "O2", "O3"), keyed=True)  # fmt: skip
exec_time_optimization_effort = flag(
    "jax_exec_time_optimization_effort", 0.0, "compiler effort for speed, -1 to 1", keyed=True
)
memory_fitting_effort = flag(
    "jax_memory_fitting_effort", 0.0, "compiler effort for memory, -1 to 1", keyed=True
)
disable_most_optimizations = flag(
    "jax_disable_most_optimizations", False, "compile fast instead of well", keyed=True
)
compiler_enable_remat_pass = flag(
    "jax_compiler_enable_remat_pass", True, "XLA may recompute to save memory", keyed=True
)
compiler_detailed_logging_min_ops = flag(
    "jax_compiler_detailed_logging_min_ops", 10, "log details of larger programs only"
)
use_shardy_partitioner = flag(
    "jax_use_shardy_partitioner", True, "partition with Shardy instead of GSPMD", keyed=True
)
use_magma = flag(
    "jax_use_magma", "auto", "use MAGMA for eig on GPUs", choices=("off", "on", "auto"), keyed=True
)
bcoo_cusparse_lowering = flag(
    "jax_bcoo_cusparse_lowering", False, "sparse products with cuSPARSE", keyed=True
)
ragged_dot_use_ragged_dot_instruction = flag(
    "jax_ragged_dot_use_ragged_dot_instruction", True, "ragged_dot as one instruction where XLA has it",
    keyed=True)  # fmt: skip
ragged_dot_use_gpu_pallas_triton_lowering = flag(
    "jax_ragged_dot_use_gpu_pallas_triton_lowering", False, "ragged_dot as a Pallas kernel",
    inert=_NO_PALLAS)  # fmt: skip
include_full_tracebacks_in_locations = flag(
    "jax_include_full_tracebacks_in_locations", True, "call stacks in MLIR locations"
)
traceback_in_locations_limit = flag(
    "jax_traceback_in_locations_limit", 100, "how many frames in MLIR locations"
)
hlo_source_file_canonicalization_regex = flag(
    "jax_hlo_source_file_canonicalization_regex", None, "parts of file names to drop in MLIR locations")  # fmt: skip
source_url_schema = flag(
    "jax_source_url_schema", None, "how file names are written as URLs in printed programs"
)
dump_ir_to = flag("jax_dump_ir_to", "", "folder that lowered programs are written to")
dump_ir_modes = flag("jax_dump_ir_modes", "stablehlo", "comma-separated: jaxpr, stablehlo, eqn_count_pprof")
include_debug_info_in_dumps = flag("jax_include_debug_info_in_dumps", True, "dumped programs carry locations")
xla_profile_version = flag("jax_xla_profile_version", 0, "profile version handed to XLA", keyed=True)
enable_pgle = flag("jax_enable_pgle", False, "recompile with profile-guided latency estimates", keyed=True)
pgle_profiling_runs = flag("jax_pgle_profiling_runs", 3, "runs to profile before recompiling", keyed=True)
pgle_aggregation_percentile = flag(
    "jax_pgle_aggregation_percentile", 90, "percentile of the profiled latencies", keyed=True
)
mosaic_allow_hlo = flag("jax_mosaic_allow_hlo", False, "HLO inside Mosaic kernels", inert=_NO_PALLAS)
pallas_use_mosaic_gpu = flag("jax_pallas_use_mosaic_gpu", True, "Pallas on GPUs by Mosaic", inert=_NO_PALLAS)
pallas_verbose_errors = flag("jax_pallas_verbose_errors", False, "longer Pallas errors", inert=_NO_PALLAS)
pallas_enable_debug_checks = flag(
    "jax_pallas_enable_debug_checks", False, "checks in Pallas kernels", inert=_NO_PALLAS
)
pallas_poison_buffers = flag(
    "jax_pallas_poison_buffers", False, "fill unset Pallas buffers", inert=_NO_PALLAS
)

# The persistent compilation cache.
enable_compilation_cache = flag(
    "jax_enable_compilation_cache", True, "keep compiled programs on disk, if there is a folder"
)
compilation_cache_dir = flag("jax_compilation_cache_dir", None, "folder of the compilation cache")
compilation_cache_max_size = flag("jax_compilation_cache_max_size", -1, "bytes it may hold (-1: unlimited)")
compilation_cache_check_contents = flag(
    "jax_compilation_cache_check_contents", False, "compile anyway and compare with the cache"
)
compilation_cache_expect_pgle = flag(
    "jax_compilation_cache_expect_pgle", False, "entries were compiled with profiles"
)
compilation_cache_include_metadata_in_key = flag(
    "jax_compilation_cache_include_metadata_in_key", False, "source locations are part of the key")  # fmt: skip
persistent_cache_min_compile_time_secs = flag(
    "jax_persistent_cache_min_compile_time_secs", 1.0, "faster compilations are not kept"
)
persistent_cache_min_entry_size_bytes = flag(
    "jax_persistent_cache_min_entry_size_bytes", 0, "smaller programs are not kept"
)
persistent_cache_enable_xla_caches = flag(
    "jax_persistent_cache_enable_xla_caches", "xla_gpu_per_fusion_autotune_cache_dir",
    "XLA's own caches to put into the folder: all, none, or names", optional=True)  # fmt: skip
raise_persistent_cache_errors = flag(
    "jax_raise_persistent_cache_errors", False, "errors of the cache are raised, not warned about"
)
remove_custom_partitioning_ptr_from_cache_key = flag(
    "jax_remove_custom_partitioning_ptr_from_cache_key", False, "keys do not depend on callback addresses")  # fmt: skip
share_binary_between_hosts = flag("jax_share_binary_between_hosts", False, "one host compiles for all")
share_binary_between_hosts_timeout_ms = flag(
    "jax_share_binary_between_hosts_timeout_ms", 1_200_000, "milliseconds to wait for it"
)

# Several hosts.
distributed_debug = flag("jax_distributed_debug", False, "log the start of distributed runs")
enable_recoverability = flag("jax_enable_recoverability", False, "other processes survive the death of one")
enable_preemption_service = flag(
    "jax_enable_preemption_service", True, "run the service that announces preemptions"
)
check_proxy_envs = flag("jax_check_proxy_envs", True, "warn about proxy variables before distributed starts")

# Export and TensorFlow.
export_calling_convention_version = flag(
    "jax_export_calling_convention_version", 10, "calling convention of exported programs", keyed=True
)
export_ignore_forward_compatibility = flag(
    "jax_export_ignore_forward_compatibility", False, "export may use features that older consumers lack",
    keyed=True)  # fmt: skip
serialization_version = flag("jax_serialization_version", 0, "version of serialized exports (0: the default)")
jax2tf_associative_scan_reductions = flag(
    "jax2tf_associative_scan_reductions", False, "cumulative reductions as associative scans in TF graphs",
    keyed=True)  # fmt: skip
jax2tf_default_native_serialization = flag(
    "jax2tf_default_native_serialization", False, "jax2tf.convert writes StableHLO rather than TF ops, unless told otherwise")  # fmt: skip
