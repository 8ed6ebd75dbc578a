"""`lax.map` in batches, without `bedrax.batching` and with it."""

import numpy as np

import bedrax.numpy_backend
from bedrax import lax
from bedrax.core import offers

offers.name_all({})  # as if only the imported packages were installed
x = np.arange(5, dtype=np.float32)
try:
    lax.map(lax.neg, x, batch_size=2)
except NotImplementedError as error:
    assert "install bedrax-batching" in str(error)
else:
    raise AssertionError("vmap is not offered yet")
import bedrax.batching  # noqa: F401  offers vmap

assert (np.asarray(lax.map(lax.neg, x, batch_size=2)) == -x).all()
