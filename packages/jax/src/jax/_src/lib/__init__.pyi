from bedrax.xla_backend.door.client import (
    jaxlib_extension_version as jaxlib_extension_version,  # Grain
    xla_client as xla_client,  # Dynamiqs
)
from . import mlir as mlir
