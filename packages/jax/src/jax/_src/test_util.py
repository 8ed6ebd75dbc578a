"""`jax._src.test_util`: names that the public guide to checkpointing, and tests of libraries, use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.autodiff.checking": ("check_grads", "check_jvp", "check_vjp"),
        "bedrax.extend.small_meshes": ("create_mesh",),
    },
)
