"""Listeners for events that the system and libraries record.

The system records how long tracing, lowering and compiling a program takes (durations under
``/jax/core/compile/``), and hits and misses of the compilation cache (events under ``/jax/compilation_cache/``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from bedrax.core.defining import named

_listeners: dict[str, list[Callable[..., Any]]] = {"event": [], "duration": [], "time_span": [], "scalar": []}


class _Recorder(Protocol):
    def __call__(self, event: str, /, *values: Any, **kwargs: Any) -> None: ...


def _register(name: str, kind: str, example: str) -> Callable[[Callable[..., None]], None]:
    """Return the function `name`, which adds a listener of a kind of events."""

    def register(callback: Callable[..., None]) -> None:
        _listeners[kind].append(callback)

    return named(
        register, name, __name__, f"Call ``callback(event, ...)`` for every {kind} event from now on.", example
    )


def _unregister(name: str, kind: str, example: str) -> Callable[[Callable[..., None]], None]:
    """Return the function `name`, which removes a listener of a kind of events."""

    def unregister(callback: Callable[..., None]) -> None:
        if callback not in _listeners[kind]:
            raise ValueError(f"{callback} is not registered as a listener of {kind} events")
        _listeners[kind].remove(callback)

    return named(unregister, name, __name__, f"Stop calling a listener of {kind} events.", example)


def _recorder(name: str, kind: str, example: str) -> _Recorder:
    """Return the function `name`, which calls the listeners of a kind of events."""

    def record(event: str, *values: Any, **kwargs: Any) -> None:
        for callback in tuple(_listeners[kind]):  # a listener may unregister itself
            callback(event, *values, **kwargs)

    text = f"""Call the listeners of {kind} events.

    Args:
      event: the name of the event.
      *values: its values; none, a duration in seconds, the start and the end of a time span, or a number.
      **kwargs: metadata.
    """
    return named(record, name, __name__, text, example)


register_event_listener: Final = _register(
    "register_event_listener",
    "event",
    """
    >>> from jax import monitoring

    >>> seen = []
    >>> def listener(event, **kwargs):
    ...     seen.append(event)
    ...
    >>> monitoring.register_event_listener(listener)
    >>> monitoring.record_event("/docs/started")
    >>> seen
    ['/docs/started']
    >>> monitoring.unregister_event_listener(listener)
    """,
)
register_event_duration_secs_listener: Final = _register(
    "register_event_duration_secs_listener",
    "duration",
    """
    >>> from jax import monitoring

    >>> seen = []
    >>> def listener(event, duration, **kwargs):
    ...     seen.append(duration)
    ...
    >>> monitoring.register_event_duration_secs_listener(listener)
    >>> monitoring.record_event_duration_secs("/docs/step", 0.5)
    >>> seen
    [0.5]
    >>> monitoring.unregister_event_duration_listener(listener)
    """,
)
register_event_time_span_listener: Final = _register(
    "register_event_time_span_listener",
    "time_span",
    """
    >>> from jax import monitoring

    >>> seen = []
    >>> def listener(event, start, end, **kwargs):
    ...     seen.append((start, end))
    ...
    >>> monitoring.register_event_time_span_listener(listener)
    >>> monitoring.record_event_time_span("/docs/step", 2., 5.)
    >>> seen
    [(2.0, 5.0)]
    >>> monitoring.unregister_event_time_span_listener(listener)
    """,
)
register_scalar_listener: Final = _register(
    "register_scalar_listener",
    "scalar",
    """
    >>> from jax import monitoring

    >>> seen = []
    >>> def listener(event, value, **kwargs):
    ...     seen.append((event, value))
    ...
    >>> monitoring.register_scalar_listener(listener)
    >>> monitoring.record_scalar("/docs/loss", 0.25)
    >>> seen
    [('/docs/loss', 0.25)]
    >>> monitoring.unregister_scalar_listener(listener)
    """,
)
unregister_event_listener: Final = _unregister(
    "unregister_event_listener",
    "event",
    """
    >>> from jax import monitoring

    >>> def listener(*args, **kwargs):
    ...     print("heard of", args[0])
    ...
    >>> monitoring.register_event_listener(listener)
    >>> monitoring.record_event("/docs/started")
    heard of /docs/started
    >>> monitoring.unregister_event_listener(listener)
    >>> monitoring.record_event("/docs/started")
    """,
)
unregister_event_duration_listener: Final = _unregister(
    "unregister_event_duration_listener",
    "duration",
    """
    >>> from jax import monitoring

    >>> def listener(*args, **kwargs):
    ...     print("heard of", args[0])
    ...
    >>> monitoring.register_event_duration_secs_listener(listener)
    >>> monitoring.record_event_duration_secs("/docs/step", 0.5)
    heard of /docs/step
    >>> monitoring.unregister_event_duration_listener(listener)
    >>> monitoring.record_event_duration_secs("/docs/step", 0.5)
    """,
)
unregister_event_time_span_listener: Final = _unregister(
    "unregister_event_time_span_listener",
    "time_span",
    """
    >>> from jax import monitoring

    >>> def listener(*args, **kwargs):
    ...     print("heard of", args[0])
    ...
    >>> monitoring.register_event_time_span_listener(listener)
    >>> monitoring.record_event_time_span("/docs/step", 2., 5.)
    heard of /docs/step
    >>> monitoring.unregister_event_time_span_listener(listener)
    >>> monitoring.record_event_time_span("/docs/step", 2., 5.)
    """,
)
unregister_scalar_listener: Final = _unregister(
    "unregister_scalar_listener",
    "scalar",
    """
    >>> from jax import monitoring

    >>> def listener(*args, **kwargs):
    ...     print("heard of", args[0])
    ...
    >>> monitoring.register_scalar_listener(listener)
    >>> monitoring.record_scalar("/docs/loss", 0.25)
    heard of /docs/loss
    >>> monitoring.unregister_scalar_listener(listener)
    >>> monitoring.record_scalar("/docs/loss", 0.25)
    """,
)
record_event: Final = _recorder(
    "record_event",
    "event",
    """
    >>> from jax import monitoring

    >>> seen = []
    >>> def listener(event, **kwargs):
    ...     seen.append(event)
    ...
    >>> monitoring.register_event_listener(listener)
    >>> monitoring.record_event("/docs/started")
    >>> seen
    ['/docs/started']
    >>> monitoring.unregister_event_listener(listener)
    """,
)
record_event_duration_secs: Final = _recorder(
    "record_event_duration_secs",
    "duration",
    """
    >>> from jax import monitoring

    >>> seen = []
    >>> def listener(event, duration, **kwargs):
    ...     seen.append((event, duration))
    ...
    >>> monitoring.register_event_duration_secs_listener(listener)
    >>> monitoring.record_event_duration_secs("/docs/step", 0.5)
    >>> seen
    [('/docs/step', 0.5)]
    >>> monitoring.unregister_event_duration_listener(listener)
    """,
)
record_event_time_span: Final = _recorder(
    "record_event_time_span",
    "time_span",
    """
    >>> from jax import monitoring

    >>> seen = []
    >>> def listener(event, start, end, **kwargs):
    ...     seen.append(end - start)
    ...
    >>> monitoring.register_event_time_span_listener(listener)
    >>> monitoring.record_event_time_span("/docs/step", 2., 5.)
    >>> seen
    [3.0]
    >>> monitoring.unregister_event_time_span_listener(listener)
    """,
)
record_scalar: Final = _recorder(
    "record_scalar",
    "scalar",
    """
    >>> from jax import monitoring

    >>> seen = []
    >>> def listener(event, value, **kwargs):
    ...     seen.append(value)
    ...
    >>> monitoring.register_scalar_listener(listener)
    >>> monitoring.record_scalar("/docs/loss", 0.25)
    >>> seen
    [0.25]
    >>> monitoring.unregister_scalar_listener(listener)
    """,
)


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
