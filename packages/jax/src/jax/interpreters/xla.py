"""`jax.interpreters.xla`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.xla_backend.jaxlib_door": (
        "Backend=Client",
    ),
    "bedrax.extend.interpreters": (
        "apply_primitive",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.xla_backend.jaxlib_door import (
        Client as Backend,
    )  # fmt: skip
    from bedrax.extend.interpreters import (
        apply_primitive as apply_primitive,
    )  # fmt: skip
