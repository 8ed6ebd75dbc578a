"""`jax.test_util`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.autodiff.checking": (
        "check_grads", "check_jvp", "check_vjp",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.autodiff.checking import (
        check_grads as check_grads, check_jvp as check_jvp, check_vjp as check_vjp,
    )  # fmt: skip
