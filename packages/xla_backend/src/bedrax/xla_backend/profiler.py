"""Profiles of running programs, for TensorBoard and XProf (`jax.profiler`)."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from bedrax.xla_backend import clients
from bedrax.xla_backend.door import runtime

_native = runtime.profiler()
ProfileOptions = _native.ProfileOptions
TraceAnnotation = _native.TraceMe
ProfileData, ProfileEvent, ProfilePlane = runtime.profile_data_types()

_lock = threading.Lock()
_session: tuple[Any, str] | None = None
_server: Any = None


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """XLA's message of what the instructions of profiled programs cost, for the option `fdo_profile` of compilation.

    Args:
      tensorboard_dir: where a profile was recorded. Only profiles of NVIDIA's GPUs hold such costs.
    """
    return _native.get_profiled_instructions_proto(tensorboard_dir)


def start_trace(
    log_dir: str | os.PathLike, create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:  # fmt: skip
    """Start recording what devices and the host do; `stop_trace` ends it.

    Args:
      log_dir: where the profile goes: TensorBoard's log directory.
      create_perfetto_link, create_perfetto_trace: not supported.
      profiler_options: what to record.

    Raises:
      RuntimeError: a profile is being recorded already.
    """
    global _session
    if create_perfetto_link or create_perfetto_trace:
        raise NotImplementedError(
            "start_trace: Perfetto traces are not supported; open log_dir in TensorBoard or XProf"
        )
    with _lock:
        if _session is not None:
            raise RuntimeError("a trace is being recorded already; call stop_trace first")
        clients.backends()  # devices register what they record
        session = _native.ProfilerSession() if profiler_options is None else _native.ProfilerSession(profiler_options)
        _session = session, os.fspath(log_dir)


def stop_trace() -> None:
    """End the recording and write it to the directory given to `start_trace`.

    Raises:
      RuntimeError: nothing is being recorded.
    """
    global _session
    with _lock:
        if _session is None:
            raise RuntimeError("No profile started")
        (session, log_dir), _session = _session, None
    session.stop_and_export(log_dir)


@contextlib.contextmanager
def trace(
    log_dir: str | os.PathLike, create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:  # fmt: skip
    """Context manager: record what happens inside; see `start_trace`."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class StepTraceAnnotation(TraceAnnotation):
    """Context manager: one step of a program, as profiles show it.

    Args:
      name: e.g. ``"train"``.
      kwargs: shown beside it; ``step_num`` numbers the steps.
    """

    def __init__(self, name: str, **kwargs: Any):
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable, name: str | None = None, **decorator_kwargs: Any) -> Callable:
    """`func`, whose calls profiles show under a name (by default its own)."""
    name = name or getattr(func, "__qualname__", None) or getattr(func, "__name__", "call")

    @functools.wraps(func)
    def annotated(*args, **kwargs):
        with TraceAnnotation(name, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Serve profiles on request at a port. Keep the result: the server ends with it, or at `stop_server`.

    Raises:
      ValueError: there is a server already.
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
      ValueError: there is none.
    """
    global _server
    with _lock:
        if _server is None:
            raise ValueError("No active profiler server.")
        _server = None


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Profile the process `pid`, which serves profiles at `port`, too. Returns a function that ends this."""
    return _native.register_subprocess(pid, port)


def device_memory_profile(backend: str | None = None) -> bytes:
    """What is in the memory of devices, in the format of pprof (compressed)."""
    import gzip

    return gzip.compress(clients.get_backend(backend).heap_profile())


def save_device_memory_profile(filename: str | os.PathLike, backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file."""
    with open(filename, "wb") as file:
        file.write(device_memory_profile(backend))


__all__ = [
    "ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane", "StepTraceAnnotation", "TraceAnnotation",
    "annotate_function", "device_memory_profile", "get_profiled_instructions_proto", "register_subprocess", "save_device_memory_profile", "start_server",
    "start_trace", "stop_server", "stop_trace", "trace",
]  # fmt: skip
