from bedrax.numpy import *
from . import fft as fft, linalg as linalg  # type: ignore[no-redef]  # ours, not the other's
from bedrax.numpy import (
    __array_api_version__ as __array_api_version__,
    __array_namespace_info__ as __array_namespace_info__,
)
