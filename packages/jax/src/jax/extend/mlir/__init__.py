"""`jax.extend.mlir`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {}, (
    "dialects", "ir", "passmanager",
))  # fmt: skip

if TYPE_CHECKING:
    from jax.extend.mlir import dialects as dialects
    from jax.extend.mlir import ir as ir
    from jax.extend.mlir import passmanager as passmanager
