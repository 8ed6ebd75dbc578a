"""`jax.profiler`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.profiler": (
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
            "register_subprocess",
            "save_device_memory_profile",
            "start_server",
            "start_trace",
            "stop_server",
            "stop_trace",
            "trace",
        )
    },
)
