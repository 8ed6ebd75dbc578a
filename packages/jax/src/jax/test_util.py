"""`jax.test_util`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__, {"bedrax.autodiff.checking": ("check_grads", "check_jvp", "check_vjp")}
)
