"""`jax.interpreters`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach
from bedrax.extend import attributes as _attributes

_attributes.install()  # importers of this module read programs and primitives

__getattr__, __dir__, __all__ = attach(__name__, {".": ("ad", "batching", "mlir", "partial_eval", "pxla", "xla")})
