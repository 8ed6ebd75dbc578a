"""Programs over many devices: `meshes` and `specs` as data."""

import os

import bedrax.numpy_backend  # noqa: F401  # the default executor
from bedrax.core import offers, source
from bedrax.core.lazy import attach_stub

offers.offer("manual axis type", "bedrax.parallel.specs", "ManualAxisType")
source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
