"""A backend that is loaded while a program is traced."""

import bedrax.numpy_backend  # noqa: F401  offers the backend of NumPy
from bedrax.core import executors

executors.offer("bedrax.xla_backend", rank=1)
import numpy as np

from bedrax import lax
from bedrax.core.staging import make_jaxpr

program = make_jaxpr(lambda x: lax.add(x, lax.asarray(np.float32(1))))(np.float32(2))
print(executors.get().name, len(program.eqns))
