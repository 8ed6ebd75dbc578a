"""`jax.scipy.integrate`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.integrate": (
        "trapezoid",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.integrate import (
        trapezoid as trapezoid,
    )  # fmt: skip
