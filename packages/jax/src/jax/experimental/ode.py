"""`jax.experimental.ode`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.libraries.ode": (
        "odeint",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.libraries.ode import (
        odeint as odeint,
    )  # fmt: skip
