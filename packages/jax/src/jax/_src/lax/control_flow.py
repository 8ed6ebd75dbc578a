"""`jax._src.lax.control_flow`: names that PyTensor (fori_loop) and Oryx use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.lax": ("cond", "fori_loop", "map", "scan", "switch", "while_loop"),
        "bedrax.lax.primitives.control_flow": ("cond_p", "scan_p", "while_p"),
    },
)
