"""Listeners for events that the system and libraries record.

The system records how long tracing, lowering and compiling a program takes (durations under
``/jax/core/compile/``), and hits and misses of the compilation cache (events under ``/jax/compilation_cache/``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

_listeners: dict[str, list[Callable[..., Any]]] = {"event": [], "duration": [], "time_span": [], "scalar": []}


class _Recorder(Protocol):
    def __call__(self, event: str, /, *values: Any, **kwargs: Any) -> None: ...


class _Functions(NamedTuple):
    register: Callable[[Callable[..., None]], None]
    unregister: Callable[[Callable[..., None]], None]
    record: _Recorder


def _functions(kind: str, *names: str) -> _Functions:
    """Return the functions of a kind of events, which get these names."""

    def register(callback: Callable[..., None]) -> None:
        _listeners[kind].append(callback)

    def unregister(callback: Callable[..., None]) -> None:
        if callback not in _listeners[kind]:
            raise ValueError(f"{callback} is not registered as a listener of {kind} events")
        _listeners[kind].remove(callback)

    def record(event: str, *values: Any, **kwargs: Any) -> None:
        for callback in tuple(_listeners[kind]):  # one may unregister itself
            callback(event, *values, **kwargs)

    register.__doc__ = f"Call ``callback(event, ...)`` for every {kind} event from now on."
    unregister.__doc__ = f"Stop calling a listener of {kind} events."
    record.__doc__ = f"Tell the listeners of a {kind} event: its name, its values, and metadata by keyword."
    functions = _Functions(register, unregister, record)
    for function, name in zip(functions, names, strict=True):
        function.__name__ = function.__qualname__ = name
    return functions


_event = _functions("event", "register_event_listener", "unregister_event_listener", "record_event")
_duration = _functions(
    "duration",
    "register_event_duration_secs_listener",
    "unregister_event_duration_listener",
    "record_event_duration_secs",
)
_time_span = _functions(
    "time_span", "register_event_time_span_listener", "unregister_event_time_span_listener", "record_event_time_span"
)
_scalar = _functions("scalar", "register_scalar_listener", "unregister_scalar_listener", "record_scalar")

register_event_listener: Final = _event.register
unregister_event_listener: Final = _event.unregister
record_event: Final = _event.record
register_event_duration_secs_listener: Final = _duration.register
unregister_event_duration_listener: Final = _duration.unregister
record_event_duration_secs: Final = _duration.record
register_event_time_span_listener: Final = _time_span.register
unregister_event_time_span_listener: Final = _time_span.unregister
record_event_time_span: Final = _time_span.record
register_scalar_listener: Final = _scalar.register
unregister_scalar_listener: Final = _scalar.unregister
record_scalar: Final = _scalar.record


def clear_event_listeners() -> None:
    """Drop every listener.

    Examples:

      >>> from jax import monitoring

      >>> seen = []
      >>> monitoring.register_event_listener(lambda event, **kwargs: seen.append(event))
      >>> monitoring.clear_event_listeners()
      >>> monitoring.record_event("/docs/started")
      >>> seen
      []
    """
    for listeners in _listeners.values():
        listeners.clear()
