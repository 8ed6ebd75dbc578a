"""`jax.extend`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {}, (
    "backend", "core", "ifrt_programs", "linear_util", "lowering", "mlir", "random", "source_info_util",
))  # fmt: skip

if TYPE_CHECKING:
    from jax.extend import backend as backend
    from jax.extend import core as core
    from jax.extend import ifrt_programs as ifrt_programs
    from jax.extend import linear_util as linear_util
    from jax.extend import lowering as lowering
    from jax.extend import mlir as mlir
    from jax.extend import random as random
    from jax.extend import source_info_util as source_info_util
