"""`jax._src.distributed`: names that Orbax uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        # Orbax: global_state
        "bedrax.processes.distributed": ("State", "global_state", "initialize", "shutdown")
    },
)
