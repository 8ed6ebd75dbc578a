"""`jax.experimental.layout`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__, {"bedrax.xla_backend.layout": ("Format", "Layout", "explicit_layout", "with_layout_constraint")}
)
