"""`jax.experimental`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.lax.primitives.callbacks": (
        "io_callback",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES, (
    "array_serialization", "checkify", "colocated_python", "compilation_cache", "hijax", "jax2tf", "jet",
    "key_reuse", "layout", "multihost_utils", "ode", "pjit", "shard_map", "sparse",
))  # fmt: skip

if TYPE_CHECKING:
    from bedrax.lax.primitives.callbacks import io_callback as io_callback  # fmt: skip
    from jax.experimental import array_serialization as array_serialization
    from jax.experimental import checkify as checkify
    from jax.experimental import colocated_python as colocated_python
    from jax.experimental import compilation_cache as compilation_cache
    from jax.experimental import hijax as hijax
    from jax.experimental import jax2tf as jax2tf
    from jax.experimental import jet as jet
    from jax.experimental import key_reuse as key_reuse
    from jax.experimental import layout as layout
    from jax.experimental import multihost_utils as multihost_utils
    from jax.experimental import ode as ode
    from jax.experimental import pjit as pjit
    from jax.experimental import shard_map as shard_map
    from jax.experimental import sparse as sparse
