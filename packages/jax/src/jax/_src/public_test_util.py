"""`jax._src.public_test_util`: names that tinygp uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__, {"bedrax.autodiff.checking": ("check_close", "check_grads", "check_jvp", "check_vjp")}
)
