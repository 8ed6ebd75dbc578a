"""`jax.ad_checkpoint`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.autodiff.policies": (
        "Offloadable", "Recompute", "Saveable", "print_saved_residuals",
    ),
    "bedrax.autodiff": (
        "checkpoint_name", "checkpoint_policies",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.autodiff.policies import (
        Offloadable as Offloadable, Recompute as Recompute, Saveable as Saveable,
        print_saved_residuals as print_saved_residuals,
    )  # fmt: skip
    from bedrax.autodiff import (
        checkpoint_name as checkpoint_name, checkpoint_policies as checkpoint_policies,
    )  # fmt: skip
