"""`lax.map` in batches before and after `bedrax.batching` is imported."""

import numpy as np

import bedrax.numpy_backend
from bedrax import lax

x = np.arange(5, dtype=np.float32)
try:
    lax.map(lax.neg, x, batch_size=2)
except NotImplementedError as error:
    assert "import bedrax.batching" in str(error)
else:
    raise AssertionError("vmap is not offered yet")
import bedrax.batching  # noqa: F401  offers vmap

assert (np.asarray(lax.map(lax.neg, x, batch_size=2)) == -x).all()
