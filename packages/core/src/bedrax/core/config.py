"""Options of the system: `jax.config` for users.

Every option is one `Flag`, declared once, by the package that reads it (those of the kernel at the end of this
file). A flag is a variable of the context (`bedrax.core.context`) with a kind, a meaning, and a global value (from the
environment, `config.update`, or absl). A keyed flag belongs to the key under which traced and compiled programs are
cached. A thread may override a flag:

    with enable_x64(True): ...

Inside Bedrax, options are read as `enable_x64.value`; users read `config.jax_enable_x64`. The options of installed
packages are found before these are imported: each package offers the module that declares them (`bedrax.core.offers`).
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, Final

from bedrax.core import context, offers
from bedrax.core.context import UNSET, Changes, Variable, thread

_flags: dict[str, Flag] = {}
_users_only: list[Flag] = []
_searched: set[str] = set()  # the offered modules whose flags are declared, or whose libraries are missing
_global_listeners: list[Callable[[Flag], None]] = []
_lock = threading.RLock()


_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
_FALSE = frozenset({"0", "false", "f", "no", "n", "off", ""})


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"expected one of true, false, 1, 0, yes, no, on, off, got {text!r}")


_PARSERS: dict[type, Callable[[str], Any]] = {bool: _parse_bool, int: int, float: float, str: str, object: str}


class Flag(Variable):
    """One option: a variable of the context with a global value.

    Attributes:
      name: as in `config.update(name, value)`; the environment variable is the name in capitals.
      kind: bool, int, float, str, or object (any hashable value).
      choices: the values a str flag is restricted to, or None.
      keyed: whether it is part of the trace context.
      inert: why this flag has no effect, or None. It may depend on what is installed.
      settled: if not None, why the global value cannot be changed any more.
      users_only: whether it applies to users' code only. It has its default while a rule of Bedrax is traced.
    """

    __slots__ = (
        "kind",
        "choices",
        "optional",
        "help",
        "_inert",
        "check",
        "settled",
        "users_only",
        "global_value",
        "_set_by",
        "__name__",
    )

    def __init__(
        self,
        name: str,
        default: Any,
        meaning: str,
        *,
        kind: type | None = None,
        choices: tuple[Any, ...] = (),
        optional: bool | None = None,
        keyed: bool = False,
        inert: str | Callable[[], str | None] | None = None,
        check: Callable[[Any], bool] | None = None,
        users_only: bool = False,
    ) -> None:
        if keyed and isinstance(inert, str):
            raise ValueError(f"{name} changes nothing, so it cannot be part of the trace context")
        self.name = name
        self.default = default
        self.kind: type | type[str] = kind or (str if default is None else type(default))
        if self.kind not in _PARSERS:
            raise ValueError(
                f"{name} has values of type {self.kind}, which have no text form; declare a `context.Variable`"
            )
        self.choices: tuple[Any, ...] | None = choices or None
        self.optional: bool = default is None if optional is None else optional
        self.help: str = meaning
        self._inert = inert
        self.check: Callable[[Any], bool] | None = check
        self.users_only: bool = users_only
        self.settled: str | None = None
        self.__name__: str = name.removeprefix("jax_")
        self.global_value: Any = default
        self._set_by = "default"
        text = os.environ.get(self.env)
        if text is not None:
            self.global_value = self._from_text(text, f"the environment variable {self.env}")
            self._set_by = "environment"
        super().__init__(name, default, keyed=keyed)

    @property
    def inert(self) -> str | None:
        """Why this flag has no effect, or None if it has one."""
        return self._inert() if callable(self._inert) else self._inert

    @property
    def env(self) -> str:
        """The name of the environment variable that sets the initial value."""
        return self.name.upper()

    @property
    def value(self) -> Any:
        """The value in force in this thread."""
        return thread.context.values.get(self.name, self.global_value) if self.may_be_local else self.global_value

    @property
    def origin(self) -> str:
        """The source of the value in force in this thread: "default", "environment", or "code"."""
        return "code" if self.name in thread.context.values else self._set_by

    def set(self, value: Any) -> None:
        """Change the global value. If a listener raises, the former value is restored."""
        value = self.validate(value)
        if self.settled is not None and value != self.global_value:
            raise RuntimeError(f"{self.name} cannot become {value!r} any more: {self.settled}")
        self._warn_if_inert(value)
        before = self.global_value, self._set_by
        called: list[Callable[[Flag], None]] = []
        try:
            self._install(value, "code")
            _call_listeners(self, called)
        except BaseException:
            self._install(*before)
            for callback in called:  # it reads the former value; a further error would hide the one of the change
                with contextlib.suppress(Exception):
                    callback(self)
            raise

    def _install(self, value: Any, origin: str) -> None:
        with _lock:
            self.global_value, self._set_by = value, origin
            if self.keyed:
                context.globals_changed()

    def __call__(self, value: Any = UNSET, /, **kwargs: Any) -> Changes:
        if value is UNSET:
            value = kwargs.pop("disable" if self is disable_jit else "new_val", UNSET)
        if kwargs:
            raise TypeError(f"{self.__name__}() takes one argument, the new value, got {sorted(kwargs)}")
        if value is UNSET:
            if self.kind is not bool:
                raise TypeError(f"{self.__name__}() needs the value that {self.name} should have inside the with block")
            value = True
        value = self.validate(value)
        self._warn_if_inert(value)
        return Changes({self: value})

    def _warn_if_inert(self, value: Any) -> None:
        if value != self.default and self.inert is not None:
            warnings.warn(f"{self.name} has no effect: {self.inert}", UserWarning, stacklevel=3)

    def validate(self, value: Any) -> Any:
        """Return `value` in the flag's type. Raises ValueError if it is not one of this flag's values."""
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
        raise ValueError(f"{self.name} must be {self._expected()}, got {value!r} of type {type(value).__name__}")

    def _expected(self) -> str:
        if self.choices is not None:
            what = "one of " + ", ".join(map(repr, self.choices))
        else:
            what = {object: f"valid ({self.help})", bool: "True or False"}.get(self.kind, f"a {self.kind.__name__}")
        return what + (" or None" if self.optional else "")

    def _from_text(self, text: str, origin: str) -> Any:
        if self.optional and text == "":
            return None
        try:
            return self.validate(_PARSERS[self.kind](text))
        except ValueError as e:
            raise ValueError(f"{origin} has a bad value: {self.name} must be {self._expected()}, got {text!r}") from e

    def __bool__(self) -> bool:
        raise TypeError(f"the flag {self.__name__} is not its value: read {self.__name__}.value or config.{self.name}")

    def __repr__(self) -> str:
        return f"<flag {self.name}={self.value!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return find, (self.name,)


def on_change(*flags: Flag) -> Callable[[Callable[[Flag], None]], Callable[[Flag], None]]:
    """Decorator: call ``callback(flag)`` after each change of one of `flags`, global or of a thread.

    It is called in the changing thread, and reads `flag.global_value` and `flag.local_value`. It is called immediately
    for a flag that has another value than its default, from the environment or in this thread.
    """

    def listen(callback):
        for flag in flags:
            flag.listeners.append(callback)
            if flag.value != flag.default:
                callback(flag)
        return callback

    return listen


def on_global_change(callback: Callable[[Flag], None]) -> None:
    """Call `callback(flag)` after each change of the global value of any flag, in the changing thread."""
    _global_listeners.append(callback)


def _call_listeners(flag: Flag, called: list[Callable[[Flag], None]]) -> None:
    """Call the listeners of a changed flag, and add each one to `called` before its call."""
    for callback in (*flag.listeners, *_global_listeners):
        called.append(callback)
        callback(flag)


def flag(name: str, default: Any, meaning: str, **options: Any) -> Flag:
    """Declare a flag."""
    new = Flag(name, default, meaning, **options)
    with _lock:
        _flags[name] = new
        if new.users_only:
            _users_only.append(new)
    if new.global_value != default:  # from the environment
        if new.keyed:
            context.globals_changed()
        _call_listeners(new, [])
    return new


def _load_offered() -> None:
    """Import the offered modules whose dependencies are installed."""
    for module in offers.of_kind("options of").values():
        if module in _searched:
            continue
        if importlib.util.find_spec(module.rpartition(".")[0]) is not None:
            try:
                importlib.import_module(module)
            except ModuleNotFoundError as error:  # the bridges raise at import without TensorFlow
                if error.name is None or error.name.partition(".")[0] == "bedrax":
                    raise
        _searched.add(module)


def find(name: str) -> Flag:
    """Return the flag `name`.

    Raises:
      AttributeError: there is no such option.
    """
    flag = _flags.get(name)
    if flag is None:
        _load_offered()
        flag = _flags.get(name)
    if flag is None:
        near = difflib.get_close_matches(name, _flags, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise AttributeError(f"there is no option {name}{hint}")
    return flag


def all_flags() -> list[Flag]:
    """Return every flag, those of offered modules included."""
    _load_offered()
    return list(_flags.values())


class Config:
    """The class of `jax.config`: `config.update("jax_enable_x64", True)`, `config.jax_enable_x64`."""

    def update(self, name: str, value: Any) -> None:
        """Set the option `name` for all threads.

        Raises:
          AttributeError: there is no such option.
          ValueError: the option cannot have this value.
        """
        find(name).set(value)

    def read(self, name: str) -> Any:
        """Return the value of option `name` in this thread."""
        return getattr(self, name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy, pickle and inspect look up such names; no flag has one
            raise AttributeError(name)
        return find(name).value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"options are set by a call: config.update({name!r}, {value!r})")

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *(flag.name for flag in all_flags())])

    @property
    def values(self) -> dict[str, Any]:
        """All options with their values in this thread."""
        return {flag.name: flag.value for flag in all_flags()}

    @property
    def x64_enabled(self) -> bool:
        return enable_x64.value

    def config_with_absl(self) -> None:
        """Declare every option as an absl flag, read back when absl has parsed the command line."""
        from absl import app, flags

        kinds = {bool: flags.DEFINE_bool, int: flags.DEFINE_integer, float: flags.DEFINE_float}
        declared = False
        for flag in all_flags():
            if flag.name in flags.FLAGS or flag.kind not in (*kinds, str, object):  # others are set by functions
                continue
            declared = True
            if flag.choices is not None and flag.kind not in kinds:  # numbers are checked when they are set
                flags.DEFINE_enum(flag.name, flag.global_value, list(flag.choices), flag.help)
            elif flag.kind is object:  # a command line can name objects, not spell them
                default = flag.global_value
                flags.DEFINE_string(flag.name, default if isinstance(default, str) else None, flag.help)
            else:
                kinds.get(flag.kind, flags.DEFINE_string)(flag.name, flag.global_value, flag.help)
        if declared:
            app.call_after_init(self.complete_absl_config)

    def complete_absl_config(self) -> None:
        """Take over the options that were given on the command line."""
        from absl import flags

        for flag in all_flags():
            if flag.name in flags.FLAGS and flags.FLAGS[flag.name].present:
                flag.set(flags.FLAGS[flag.name].value)

    def parse_flags_with_absl(self) -> None:
        """Read options such as `--jax_enable_x64` from the command line now, with absl.

        Other arguments stay on the command line.
        """
        from absl import flags

        self.config_with_absl()
        flags.FLAGS(sys.argv, known_only=True)
        self.complete_absl_config()


config: Final = Config()


def our_code() -> Changes:
    """Context manager to trace code of Bedrax: flags that apply to users' code only have their defaults."""
    return Changes({flag: flag.default for flag in _users_only if flag.value != flag.default})


def overriding(**values: Any) -> Changes:
    """Override several flags in this thread: `overriding(jax_enable_x64=True, jax_debug_nans=True)`."""
    return Changes({flag: flag(value).values[flag] for flag, value in ((find(n), v) for n, v in values.items())})


# ---- The kernel's own flags ------------------------------------------------------------------------------------

enable_x64: Final = flag(
    "jax_enable_x64", False, "64-bit types are kept; otherwise they become 32-bit types", keyed=True
)
explicit_x64_dtypes: Final = flag(
    "jax_explicit_x64_dtypes",
    "warn",
    "the reaction to a 64-bit type that is requested by name while x64 is off",
    choices=("warn", "error", "allow"),
    keyed=True,
)
numpy_dtype_promotion: Final = flag(
    "jax_numpy_dtype_promotion",
    "standard",
    "'strict': only equal types and Python scalars combine implicitly",
    choices=("standard", "strict"),
    keyed=True,
    users_only=True,
)
debug_nans: Final = flag("jax_debug_nans", False, "an operation that makes a NaN raises FloatingPointError", keyed=True)
debug_infs: Final = flag(
    "jax_debug_infs", False, "an operation that makes an infinity raises FloatingPointError", keyed=True
)
disable_jit: Final = flag("jax_disable_jit", False, "jit runs its function op by op", keyed=True, users_only=True)
check_tracer_leaks: Final = flag(
    "jax_check_tracer_leaks", False, "an error when a tracer outlives its trace", keyed=True
)
enable_checks: Final = flag(
    "jax_enable_checks", False, "check internal invariants: every jaxpr is type checked", keyed=True
)
explain_cache_misses: Final = flag(
    "jax_explain_cache_misses", False, "when jit traces a function, log at WARNING what no earlier trace had"
)
pprint_use_color: Final = flag("jax_pprint_use_color", True, "printed programs have colors on a terminal")
warn_jit_in_loop: Final = flag(
    "jax_warn_jit_in_loop", True, "log a warning when jit compiles the same code for the same types again and again"
)
warn_growing_shapes: Final = flag(
    "jax_warn_growing_shapes", True, "log a warning when a function is compiled for many lengths of an axis"
)
warn_eager_loop: Final = flag(
    "jax_warn_eager_loop", True, "log a warning when operations outside of jit at one line are compiled again and again"
)
no_tracing: Final = flag("jax_no_tracing", False, "tracing for jit is an error")
traceback_filtering: Final = flag(
    "jax_traceback_filtering",
    "auto",
    "how our frames are taken out of tracebacks",
    choices=("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"),
)
logging_level: Final = flag(
    "jax_logging_level",
    "NOTSET",
    "level of our loggers",
    choices=("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
)
debug_log_modules: Final = flag(
    "jax_debug_log_modules", "", "comma-separated modules whose DEBUG log is written to stderr"
)

_debugged: dict[str, tuple[logging.Handler, int]] = {}  # modules whose log is shown; their handlers and former levels


@on_change(logging_level, debug_log_modules)
def _set_up_logging(flag: Flag) -> None:
    if flag is logging_level:
        logging.getLogger("jax").setLevel(flag.global_value)
        return
    wanted = {module for module in flag.global_value.split(",") if module}
    for module in _debugged.keys() - wanted:
        logger, (handler, level) = logging.getLogger(module), _debugged.pop(module)
        logger.removeHandler(handler)
        if logger.level == logging.DEBUG:  # a level that was set since then stays
            logger.setLevel(level)
    for module in wanted - _debugged.keys():
        logger = logging.getLogger(module)
        _debugged[module] = logging.StreamHandler(), logger.level
        logger.addHandler(_debugged[module][0])
        logger.setLevel(logging.DEBUG)
