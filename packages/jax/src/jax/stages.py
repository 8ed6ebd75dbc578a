"""`jax.stages`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.xla_backend.stages": (
        "ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.xla_backend.stages import (
        ArgInfo as ArgInfo, Compiled as Compiled, CompilerOptions as CompilerOptions, Lowered as Lowered,
        Traced as Traced, Wrapped as Wrapped,
    )  # fmt: skip
