"""SciPy's functions as programs: traceable, differentiable, batchable."""

import os

import bedrax.numpy_backend  # noqa: F401  # the executor of arrays without devices
from bedrax.core import source
from bedrax.core.lazy import attach

source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        ".": (
            "cluster",
            "fft",
            "integrate",
            "interpolate",
            "linalg",
            "ndimage",
            "optimize",
            "signal",
            "sparse",
            "spatial",
            "special",
            "stats",
        )
    },
)
