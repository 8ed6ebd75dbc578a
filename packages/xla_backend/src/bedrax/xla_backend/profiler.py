"""Profiles of running programs, for TensorBoard and XProf (`jax.profiler`)."""

from __future__ import annotations

import contextlib
import functools
import glob
import gzip
import json
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from bedrax.xla_backend import clients
from bedrax.xla_backend.door import runtime, versions

_native = runtime.profiler()
ProfileOptions = _native.ProfileOptions
TraceAnnotation = _native.TraceMe
ProfileData: Any
ProfileEvent: Any
ProfileLine: Any
ProfilePlane: Any
ProfileData, ProfileEvent, ProfileLine, ProfilePlane = runtime.profile_data_types()

_lock = threading.Lock()
_running: ProfileSession | None = None  # at most one
_ended: weakref.WeakSet[ProfileSession] = weakref.WeakSet()  # the sessions that hold a profile
_server: Any = None


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """XLA's message of the costs of instructions in profiled programs, for the option `fdo_profile` of compilation.

    Args:
      tensorboard_dir: the directory of a recorded profile. Only profiles of NVIDIA's GPUs hold such costs.
    """
    return _native.get_profiled_instructions_proto(tensorboard_dir)


class ProfileSession:
    """A recording of the activity of devices and host: between `start` and `stop`, or as a context manager.

    Args:
      log_dir: the directory for the profile: TensorBoard's log directory. None keeps the profile in memory.
      create_perfetto_link: not supported.
      create_perfetto_trace: write ``perfetto_trace.json.gz`` next to the profile, for the viewer of Perfetto.
      profiler_options: options of the recording.

    Raises:
      NotImplementedError: `create_perfetto_link` is set.

    Examples:

      >>> with jax.profiler.ProfileSession() as session:
      ...     x = jnp.ones(3) + 1
      ...
      >>> any("CPU" in plane.name for plane in session.profile_data.planes)
      True
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        profiler_options: ProfileOptions | None = None,
    ) -> None:
        _refuse_link(create_perfetto_link)
        self._log_dir, self._perfetto, self._options = log_dir, create_perfetto_trace, profiler_options
        self._recorder: Any = None
        self._serialized: bytes | None = None
        self._data: ProfileData | None = None

    @property
    def is_running(self) -> bool:
        """Whether the session is recording."""
        return _running is self

    @property
    def profile_data(self) -> ProfileData | None:
        """The recorded profile; None before the end."""
        if self._data is None and self._serialized is not None:
            self._data = ProfileData.from_serialized_xspace(self._serialized)
        return self._data

    def start(self) -> ProfileSession:
        """Start to record, and return the session. The previous recording of the session is dropped.

        Raises:
          RuntimeError: a profile is being recorded already.
        """
        global _running
        with _lock:
            if _running is not None:
                raise RuntimeError("a trace is being recorded already; call stop_trace first")
            clients.backends()  # devices register their sources of events
            options = () if self._options is None else (self._options,)
            self._recorder = _native.ProfilerSession(*options)
            self._serialized = self._data = None
            _running = self
        return self

    def stop(self) -> ProfileData:
        """End the recording, write it if there is a directory for it, and return it.

        Raises:
          RuntimeError: the session is not recording.
        """
        global _running
        with _lock:
            if _running is not self:
                raise RuntimeError("No profile started: this session does not record")
            _running = None
        self._serialized = self._recorder.stop()
        _ended.add(self)
        if self._log_dir is not None:
            self.export_profile_data(self._log_dir, create_perfetto_trace=self._perfetto)
        return self.profile_data

    def export_profile_data(
        self,
        log_dir: str | os.PathLike[str],
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        session_id: str | None = None,
    ) -> None:
        """Write the recorded profile; see `export_profile_data`."""
        _refuse_link(create_perfetto_link)
        if self._serialized is None:
            raise RuntimeError("there is no profile to write: the session has not ended")
        _write(
            lambda folder: self._recorder.export(self._serialized, folder), log_dir, create_perfetto_trace, session_id
        )

    def __enter__(self) -> ProfileSession:
        return self.start()

    def __exit__(self, *_: Any) -> None:
        if self.is_running:
            self.stop()


def _refuse_link(create_perfetto_link: bool) -> None:
    if create_perfetto_link:
        raise NotImplementedError(
            "create_perfetto_link is not supported: it serves the file to a browser and waits. With"
            " create_perfetto_trace=True, open the file perfetto_trace.json.gz at ui.perfetto.dev"
        )


def _write(export: Callable[[str], None], log_dir: str | os.PathLike, perfetto: bool, session_id: str | None) -> None:
    """Write a profile by `export`, which names its folder by the time, to a separate folder in `log_dir`."""
    log_dir = os.fspath(log_dir)
    os.makedirs(log_dir, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=log_dir) as scratch:
        export(scratch)
        (written,) = glob.glob(os.path.join(scratch, "plugins", "profile", "*"))
        if perfetto:
            (events,) = glob.glob(os.path.join(glob.escape(written), "*.trace.json.gz"))
            _write_for_perfetto(events, os.path.join(written, "perfetto_trace.json.gz"))
        target = os.path.join(log_dir, "plugins", "profile", session_id or os.path.basename(written))
        os.makedirs(target, exist_ok=True)
        for name in os.listdir(written):
            os.replace(os.path.join(written, name), os.path.join(target, name))


def _write_for_perfetto(source: str, target: str) -> None:
    """Copy the events of a profile, without the empty one with which XLA ends the list: it has no phase."""
    with gzip.open(source, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    trace["traceEvents"] = [event for event in trace["traceEvents"] if event]
    with gzip.open(target, "wt", encoding="utf-8", compresslevel=6) as file:
        json.dump(trace, file, separators=(",", ":"))


def _export_to_xprof(profile_data: Any, folder: str) -> None:
    _native.export_to_xprof(profile_data, folder, "profile")


def export_profile_data(
    profile_data: ProfileData | ProfileSession,
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    session_id: str | None = None,
) -> None:
    """Write a profile for TensorBoard and XProf.

    Args:
      profile_data: a `ProfileSession` that has ended, or its `profile_data`.
      log_dir: TensorBoard's log directory.
      create_perfetto_link: not supported.
      create_perfetto_trace: write also ``perfetto_trace.json.gz``, for the viewer of Perfetto.
      session_id: name of the profile's folder; by default the time.

    Raises:
      TypeError: `profile_data` is neither a `ProfileSession` nor a `ProfileData`.
      RuntimeError: the session has not ended.
      NotImplementedError: `create_perfetto_link` is set; or the session of a `ProfileData` no longer exists, and the
        installed jaxlib cannot write such data.

    Examples:

      >>> import pathlib, tempfile
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> with jax.profiler.trace() as session:
      ...     x = jnp.ones(3) + 1
      ...
      >>> jax.profiler.export_profile_data(session, folder, create_perfetto_trace=True, session_id="first")
      >>> (folder / "plugins/profile/first/perfetto_trace.json.gz").exists()
      True
    """
    if isinstance(profile_data, ProfileData):
        for session in list(_ended):
            if session._data is profile_data:
                profile_data = session
                break
        else:
            _refuse_link(create_perfetto_link)
            if missing := versions.missing("export of profile data"):
                raise NotImplementedError(f"export_profile_data: {missing}")
            export = functools.partial(_export_to_xprof, profile_data)
            return _write(export, log_dir, create_perfetto_trace, session_id)
    if not isinstance(profile_data, ProfileSession):
        raise TypeError(f"export_profile_data takes a ProfileSession or a ProfileData, got {type(profile_data)}")
    profile_data.export_profile_data(log_dir, create_perfetto_link, create_perfetto_trace, session_id)


def start_trace(
    log_dir: str | os.PathLike[str] | None = None,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Start a recording of the activity of devices and host; `stop_trace` ends it.

    Args:
      log_dir: the directory for the profile: TensorBoard's log directory. None keeps the profile in memory.
      create_perfetto_link: not supported.
      create_perfetto_trace: write also ``perfetto_trace.json.gz``, for the viewer of Perfetto.
      profiler_options: options of the recording.

    Raises:
      RuntimeError: a profile is being recorded already.
      NotImplementedError: `create_perfetto_link` is set.

    Examples:

      >>> import pathlib, tempfile
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> jax.profiler.start_trace(folder)
      >>> x = jnp.ones(3) + 1
      >>> profile = jax.profiler.stop_trace()
      >>> any(folder.iterdir())
      True
    """
    ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options).start()


def stop_trace() -> ProfileData:
    """End the recording, write it to the directory given to `start_trace`, and return it.

    Raises:
      RuntimeError: no recording is running.

    Examples:

      >>> import pathlib, tempfile
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> jax.profiler.start_trace(folder)
      >>> x = jnp.ones(3) + 1
      >>> profile = jax.profiler.stop_trace()
      >>> any(folder.iterdir())
      True
    """
    session = _running
    if session is None:
        raise RuntimeError("No profile started")
    return session.stop()


@contextlib.contextmanager
def trace(
    log_dir: str | os.PathLike[str] | None = None,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[ProfileSession]:
    """Context manager: record the activity inside the block.

    Args:
      log_dir, create_perfetto_link, create_perfetto_trace, profiler_options: as in `start_trace`.

    Returns:
      The `ProfileSession`, whose `profile_data` is set after the block.

    Examples:

      >>> import pathlib, tempfile
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> with jax.profiler.trace(folder):
      ...     x = jnp.ones(3) + 1
      ...
      >>> any(folder.iterdir())
      True
    """
    with ProfileSession(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options) as session:
        yield session


class StepTraceAnnotation(TraceAnnotation):
    """Context manager: one step of a program, as profiles show it.

    Args:
      name: e.g. ``"train"``.
      kwargs: shown with the name; ``step_num`` numbers the steps.

    Examples:

      >>> for step in range(2):
      ...     with jax.profiler.StepTraceAnnotation("train", step_num=step):
      ...         x = jnp.ones(3) * step
      ...
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable[..., Any], name: str | None = None, **decorator_kwargs: Any) -> Callable[..., Any]:
    """`func`, whose calls have a name in profiles (by default the function's name).

    Args:
      func: the function.
      name: its name in profiles.
      **decorator_kwargs: metadata, for `TraceAnnotation`.

    Examples:

      >>> @jax.profiler.annotate_function
      ... def load():
      ...     return jnp.arange(3)
      ...
      >>> load()
      Array([0, 1, 2], dtype=int32)
    """
    name = name or getattr(func, "__qualname__", None) or getattr(func, "__name__", "call")

    @functools.wraps(func)
    def annotated(*args, **kwargs):
        with TraceAnnotation(name, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Serve profiles at a port. Keep the result: the server ends when it is freed, or at `stop_server`.

    Args:
      port: the port.
      requires_backend: whether to start the platforms first.

    Raises:
      ValueError: a server is running already.
    """
    global _server
    if requires_backend:
        clients.backends()
    with _lock:
        if _server is not None:
            raise ValueError("a profiler server is running already; call stop_server first")
        _server = _native.start_server(port)
        return _server


def stop_server() -> None:
    """End the server of `start_server`.

    Raises:
      ValueError: no server is running.
    """
    global _server
    with _lock:
        if _server is None:
            raise ValueError("No active profiler server.")
        _server = None


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Include another process in profiles. Returns a function that removes it.

    Args:
      pid: the number of the process.
      port: the port at which it serves profiles.
    """
    return _native.register_subprocess(pid, port)


def device_memory_profile(backend: str | None = None) -> bytes:
    """The allocations in the memory of devices, in the format of pprof (compressed).

    Examples:

      >>> isinstance(jax.profiler.device_memory_profile(), bytes)
      True
    """
    import gzip

    return gzip.compress(clients.get_backend(backend).heap_profile())


def save_device_memory_profile(filename: str | os.PathLike[str], backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file.

    Args:
      filename: the file.
      backend: the platform. Default: the default platform.

    Examples:

      >>> import pathlib, tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp(), "memory.prof")
      >>> jax.profiler.save_device_memory_profile(str(path))
      >>> path.exists()
      True
    """
    with open(filename, "wb") as file:
        file.write(device_memory_profile(backend))


__all__ = [
    "ProfileData",
    "ProfileEvent",
    "ProfileLine",
    "ProfileOptions",
    "ProfilePlane",
    "ProfileSession",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "export_profile_data",
    "get_profiled_instructions_proto",
    "register_subprocess",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]
