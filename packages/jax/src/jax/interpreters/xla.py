"""`jax.interpreters.xla`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.extend.interpreters": (
        "apply_primitive",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.extend.interpreters import (
        apply_primitive as apply_primitive,
    )  # fmt: skip
