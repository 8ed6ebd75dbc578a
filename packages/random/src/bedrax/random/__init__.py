"""Random numbers without hidden state: keys and samplers, each loaded on first use."""

import bedrax.numpy
import bedrax.numpy_backend  # noqa: F401  # the executor of arrays without devices
from bedrax.core import offers as _offers
from bedrax.core.lazy import attach_stub

_offers.offer("dtypes key", "bedrax.random.key_array", "dtype_of_printed_name")
_offers.offer("key reuse", "bedrax.random.reuse", "watch")

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
