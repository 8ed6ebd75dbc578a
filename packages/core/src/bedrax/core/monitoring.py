"""Listeners for events that the system and libraries record.

The system records how long tracing, lowering and compiling a program takes (durations under
``/jax/core/compile/``), and hits and misses of the compilation cache (events under ``/jax/compilation_cache/``).
"""

from __future__ import annotations

from collections.abc import Callable

_listeners: dict[str, list[Callable]] = {"event": [], "duration": [], "time_span": [], "scalar": []}


def _functions(kind: str):
    def register(callback: Callable) -> None:
        _listeners[kind].append(callback)

    def unregister(callback: Callable) -> None:
        if callback not in _listeners[kind]:
            raise ValueError(f"{callback} is not registered as a listener of {kind} events")
        _listeners[kind].remove(callback)

    def record(event: str, *values, **kwargs) -> None:
        for callback in tuple(_listeners[kind]):  # one may unregister itself
            callback(event, *values, **kwargs)

    register.__doc__ = f"Call ``callback(event, ...)`` for every {kind} event from now on."
    unregister.__doc__ = f"Stop calling a listener of {kind} events."
    record.__doc__ = f"Tell the listeners of a {kind} event: its name, its values, and metadata by keyword."
    return register, unregister, record


register_event_listener, unregister_event_listener, record_event = _functions("event")
register_event_duration_secs_listener, unregister_event_duration_listener, record_event_duration_secs = _functions(
    "duration"
)
register_event_time_span_listener, unregister_event_time_span_listener, record_event_time_span = _functions("time_span")
register_scalar_listener, unregister_scalar_listener, record_scalar = _functions("scalar")


def clear_event_listeners() -> None:
    """Forget every listener."""
    for listeners in _listeners.values():
        listeners.clear()
