"""`jax.ref`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.extend.refs": (
        "AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "swap",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.extend.refs import (
        AbstractRef as AbstractRef, Ref as Ref, addupdate as addupdate, empty_ref as empty_ref,
        free_ref as free_ref, freeze as freeze, get as get, new_ref as new_ref, swap as swap,
    )  # fmt: skip
