"""SciPy's functions as programs: traceable, differentiable, batchable."""

import os

import bedrax.numpy_backend  # noqa: F401  # it evaluates, unless a backend of a higher rank is installed
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
