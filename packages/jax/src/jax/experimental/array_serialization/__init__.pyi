from . import (
    pytree_serialization as pytree_serialization,
    pytree_serialization_utils as pytree_serialization_utils,
    serialization as serialization,
    tensorstore_impl as tensorstore_impl,
)
