"""`jax.export`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.shape_poly": (
        "SymbolicScope", "is_symbolic_dim", "symbolic_args_specs", "symbolic_shape",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.shape_poly import (
        SymbolicScope as SymbolicScope,
        is_symbolic_dim as is_symbolic_dim,
        symbolic_args_specs as symbolic_args_specs,
        symbolic_shape as symbolic_shape,
    )
