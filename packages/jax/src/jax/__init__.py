"""Array programs that are differentiated, batched, compiled and carried to TensorFlow.

This package is a face: every name comes from one of the `bedrax` layers. The stub (``.pyi``)
beside each module says which names it has and where they come from."""

from bedrax.core import array as _array
from bedrax.core import dtypes as _dtypes
from bedrax.core import executors as _executors
from bedrax.core.lazy import attach_stub

# XLA runs what users of `jax` write, and arrays have NumPy's methods; both are loaded when first used.
_executors.offer("bedrax.xla_backend", rank=1)
_array.install_on_demand("bedrax.numpy.methods", _array.NUMPY_METHODS)


def _dtype_of_keys(name: str):
    from bedrax.random.key_array import dtype_of_printed_name  # loaded when an exported program has keys

    return dtype_of_printed_name(name)


_dtypes.extended_readers.setdefault("key<", _dtype_of_keys)

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
