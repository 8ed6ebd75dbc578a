"""`jax.extend.lowering`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.extend.mlir_rules": (
        "LoweringRuleContext",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.extend.mlir_rules import (
        LoweringRuleContext as LoweringRuleContext,
    )  # fmt: skip
