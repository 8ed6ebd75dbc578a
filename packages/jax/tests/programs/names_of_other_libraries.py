"""Prints the names of other libraries that a lookup through the face changes."""

import warnings

import ml_dtypes
import numpy
import numpy.linalg
import scipy.linalg
import scipy.special

warnings.simplefilter("ignore")
places = {module: dict(vars(module)) for module in (ml_dtypes, numpy, numpy.linalg, scipy.linalg, scipy.special)}
stated = lambda: {
    (module.__name__, name): (getattr(value, "__doc__", None), getattr(value, "__module__", None))
    for module, values in places.items()
    for name, value in values.items()
    if callable(value)
}
before = stated()
import jax
import jax.dtypes
import jax.numpy
import jax.scipy.linalg
import jax.scipy.special

for module in (jax, jax.numpy, jax.numpy.linalg, jax.dtypes, jax.scipy.linalg, jax.scipy.special):
    for name in dir(module):
        getattr(module, name, None)
after = stated()
print(*[key for key in before if before[key] != after[key]])
