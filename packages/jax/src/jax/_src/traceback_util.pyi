from bedrax.core.source import (  # both: register_exclusion, api_boundary; Equinox: include_frame
    api_boundary as api_boundary, exclude_paths as _exclude_paths, is_user_frame as _is_user_frame,
    register_exclusion as register_exclusion,
)  # fmt: skip

include_frame = _is_user_frame
