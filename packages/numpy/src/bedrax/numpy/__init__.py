"""`bedrax.numpy`: the NumPy API for traceable, differentiable, batchable arrays.

Importing it gives all arrays their NumPy methods. These, like the functions, are loaded on first use.
"""

import bedrax.numpy_backend  # noqa: F401  # what evaluates where nobody else does
from bedrax.core import array as _array
from bedrax.core.lazy import attach_stub

_array.install_on_demand("bedrax.numpy.methods", _array.NUMPY_METHODS)

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
