"""`jax.experimental.colocated_python.func`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.processes.colocated": (
        "is_prng_key_dtype",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.processes.colocated import (
        is_prng_key_dtype as is_prng_key_dtype,
    )  # fmt: skip
