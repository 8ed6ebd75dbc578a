"""The kernel: types, primitives, tracing, the jaxpr and its passes."""

from bedrax.core import offers as _offers
from bedrax.core.lazy import attach_stub

_offers.offer("text of programs", "bedrax.core.printing", "jaxpr_text")
_offers.offer("text of equations", "bedrax.core.printing", "eqn_text")

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
