"""`jax._src.traceback_util`: names that Flax and Equinox use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        # Flax and its tests: register_exclusion, UnfilteredStackTrace; Equinox: include_frame; both: api_boundary
        "bedrax.core.source": ("api_boundary", "register_exclusion")
    },
    renamed={
        "bedrax.core.source": {
            "UnfilteredStackTrace": "SimplifiedTraceback",
            "include_frame": "is_user_frame",
            "_exclude_paths": "exclude_paths",
        }
    },
)
