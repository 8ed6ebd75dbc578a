"""Arithmetic of arrays without `bedrax.numpy`."""

import sys

import bedrax.numpy_backend  # noqa: F401  the executor
from bedrax import lax
from bedrax.core import offers

offers.name_all({})  # as if nothing else were installed

x = lax.asarray(2.0)
assert float(x * x + 1) == 5.0
assert not any(m.split(".")[:2] == ["bedrax", "numpy"] for m in sys.modules)
