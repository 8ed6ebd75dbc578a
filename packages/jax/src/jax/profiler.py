"""`jax.profiler`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.xla_backend.profiler": (
        "ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane", "StepTraceAnnotation",
        "TraceAnnotation", "annotate_function", "device_memory_profile", "register_subprocess",
        "save_device_memory_profile", "start_server", "start_trace", "stop_server", "stop_trace", "trace",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.xla_backend.profiler import (
        ProfileData as ProfileData, ProfileEvent as ProfileEvent, ProfileOptions as ProfileOptions,
        ProfilePlane as ProfilePlane, StepTraceAnnotation as StepTraceAnnotation,
        TraceAnnotation as TraceAnnotation, annotate_function as annotate_function,
        device_memory_profile as device_memory_profile, register_subprocess as register_subprocess,
        save_device_memory_profile as save_device_memory_profile, start_server as start_server,
        start_trace as start_trace, stop_server as stop_server, stop_trace as stop_trace, trace as trace,
    )  # fmt: skip
