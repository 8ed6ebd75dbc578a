"""`jax.experimental.layout`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.xla_backend.layout": (
        "Format", "Layout", "with_layout_constraint",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.xla_backend.layout import (
        Format as Format, Layout as Layout, with_layout_constraint as with_layout_constraint,
    )  # fmt: skip
