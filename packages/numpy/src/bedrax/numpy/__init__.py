"""`bedrax.numpy`: the NumPy API for traceable, differentiable, batchable arrays.

The import installs the NumPy methods of all arrays. These, like the functions, are loaded on first use.
"""

import bedrax.numpy_backend  # noqa: F401  # the evaluator if no other backend is loaded
from bedrax.core import array as _array
from bedrax.core.lazy import attach_stub

_array.install_on_demand("bedrax.numpy.methods", _array.NUMPY_METHODS)

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
