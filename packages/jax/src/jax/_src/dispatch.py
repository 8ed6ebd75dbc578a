"""`jax._src.dispatch`: names that Equinox uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__, {}, renamed={"bedrax.xla_backend": {"wait_for_tokens": "effects_barrier"}}
)
