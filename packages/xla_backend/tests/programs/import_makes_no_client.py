"""An import of the backend makes no client."""

import sys

import bedrax.xla_backend as xla
from bedrax.xla_backend import clients

assert not clients.is_initialized()
assert not any(m.startswith("jaxlib.mlir") for m in sys.modules)
import numpy as np

np.asarray(xla.device_put(np.ones(2)))
assert "jax" not in sys.modules and "jax.core" not in sys.modules
