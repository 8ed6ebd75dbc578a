"""`jax.extend.mlir.dialects`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {}, (
    "arith", "builtin", "chlo", "func", "math", "memref", "mpmd", "scf", "sdy", "sparse_tensor",
    "stablehlo", "vector",
))  # fmt: skip

if TYPE_CHECKING:
    from jax.extend.mlir.dialects import arith as arith
    from jax.extend.mlir.dialects import builtin as builtin
    from jax.extend.mlir.dialects import chlo as chlo
    from jax.extend.mlir.dialects import func as func
    from jax.extend.mlir.dialects import math as math
    from jax.extend.mlir.dialects import memref as memref
    from jax.extend.mlir.dialects import mpmd as mpmd
    from jax.extend.mlir.dialects import scf as scf
    from jax.extend.mlir.dialects import sdy as sdy
    from jax.extend.mlir.dialects import sparse_tensor as sparse_tensor
    from jax.extend.mlir.dialects import stablehlo as stablehlo
    from jax.extend.mlir.dialects import vector as vector
