"""`jax._src.traceback_util`: needed by Flax and Equinox (register_exclusion, api_boundary)."""

from bedrax.core.source import (
    api_boundary,
    exclude_paths as _exclude_paths,
    is_user_frame as include_frame,
    register_exclusion,
)
