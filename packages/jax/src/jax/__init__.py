"""Array programs that are differentiated, batched, compiled and carried to TensorFlow.

This package is a face: every name comes from one of the `bedrax` layers. The stub (``.pyi``)
of each module, in the same folder, lists its names and their origins."""

import bedrax.random as _random  # noqa: F401  (exported programs may have keys, and arrays NumPy's methods)
from bedrax.core import executors as _executors
from bedrax.core import offers as _offers
from bedrax.core.lazy import attach_stub
from bedrax.core.lazy import deprecated as _deprecated

from ._gone import GONE as _GONE

_deprecated.update({name: text for name, text in _GONE.items() if text is not None})
_executors.offer("bedrax.xla_backend", rank=1)  # XLA runs the programs of users of `jax`; it is imported on first use
_offers.offer("vmap", "bedrax.batching", "vmap")
_offers.offer("manual axis type", "bedrax.parallel.specs", "ManualAxisType")
_offers.offer("array namespace", "jax", "numpy")
_offers.options.extend(
    f"bedrax.{name}.flags"
    for name in (
        "autodiff",
        "lax",
        "random",
        "nn",
        "parallel",
        "xla_backend",
        "extend",
        "jax2tf",
        "pallas",
        "processes",
    )
)

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
