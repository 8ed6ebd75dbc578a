"""`jax.interpreters`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {}, (
    "ad", "batching", "mlir", "partial_eval", "pxla", "xla",
))  # fmt: skip

if TYPE_CHECKING:
    from jax.interpreters import ad as ad
    from jax.interpreters import batching as batching
    from jax.interpreters import mlir as mlir
    from jax.interpreters import partial_eval as partial_eval
    from jax.interpreters import pxla as pxla
    from jax.interpreters import xla as xla
