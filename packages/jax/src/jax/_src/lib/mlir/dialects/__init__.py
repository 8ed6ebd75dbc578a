"""`jax._src.lib.mlir.dialects`: the dialects that the public guides use; `hlo` is StableHLO."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {".": ("func", "hlo")})
