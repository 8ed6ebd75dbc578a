"""`jax.scipy`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {}, (
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse",
    "spatial", "special", "stats",
))  # fmt: skip

if TYPE_CHECKING:
    from jax.scipy import cluster as cluster
    from jax.scipy import fft as fft
    from jax.scipy import integrate as integrate
    from jax.scipy import interpolate as interpolate
    from jax.scipy import linalg as linalg
    from jax.scipy import ndimage as ndimage
    from jax.scipy import optimize as optimize
    from jax.scipy import signal as signal
    from jax.scipy import sparse as sparse
    from jax.scipy import spatial as spatial
    from jax.scipy import special as special
    from jax.scipy import stats as stats
