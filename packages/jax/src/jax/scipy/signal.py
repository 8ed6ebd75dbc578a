"""`jax.scipy.signal`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.signal": (
        "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft",
        "stft", "welch",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.signal import (
        convolve as convolve, convolve2d as convolve2d, correlate as correlate, correlate2d as correlate2d,
        csd as csd, detrend as detrend, fftconvolve as fftconvolve, istft as istft, stft as stft,
        welch as welch,
    )  # fmt: skip
