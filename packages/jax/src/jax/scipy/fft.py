"""`jax.scipy.fft`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.fft": (
        "dct", "dctn", "idct", "idctn",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.fft import (
        dct as dct, dctn as dctn, idct as idct, idctn as idctn,
    )  # fmt: skip
