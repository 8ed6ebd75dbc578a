"""`jax.scipy.sparse.linalg`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.scipy.sparse.linalg": (
        "bicgstab", "cg", "gmres",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.scipy.sparse.linalg import (
        bicgstab as bicgstab, cg as cg, gmres as gmres,
    )  # fmt: skip
