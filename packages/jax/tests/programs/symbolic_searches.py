"""Searches in an array of unknown size, exported and called with several sizes: python symbolic_searches.py NAME"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

PROGRAMS = {
    "choice": lambda x: jax.random.choice(jax.random.key(0), x.shape[0], (4,), p=x / x.sum()),
    "searchsorted": lambda x: jnp.searchsorted(jnp.cumsum(x), x, method="scan_unrolled"),
}
(argument,) = export.symbolic_args_specs((np.ones(3, np.float32),), "n")
f = PROGRAMS[sys.argv[1]]
exported = export.export(jax.jit(f))(argument)
for n in (1, 3, 9):
    x = np.arange(1, n + 1, dtype=np.float32)
    np.testing.assert_array_equal(exported.call(x), f(x))
print("done")
