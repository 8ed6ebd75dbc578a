from bedrax.core.lazy import attach_stub
from bedrax.extend import attributes as _attributes

_attributes.install()  # importers of this module read programs and primitives

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
