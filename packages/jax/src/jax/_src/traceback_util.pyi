# Flax and its tests: register_exclusion, UnfilteredStackTrace; Equinox: include_frame; both: api_boundary
from bedrax.core.source import (
    SimplifiedTraceback as _SimplifiedTraceback,
    api_boundary as api_boundary,
    exclude_paths as _exclude_paths,
    is_user_frame as _is_user_frame,
    register_exclusion as register_exclusion,
)

UnfilteredStackTrace = _SimplifiedTraceback
include_frame = _is_user_frame
