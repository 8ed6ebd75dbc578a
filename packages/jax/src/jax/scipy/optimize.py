"""`jax.scipy.optimize`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.optimize": (
        "OptimizeResults", "minimize",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.optimize import (
        OptimizeResults as OptimizeResults, minimize as minimize,
    )  # fmt: skip
