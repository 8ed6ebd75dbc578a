"""`jax._src.literals`: names that Equinox and Quax use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__, {"bedrax.extend.literals": ("TypedComplex", "TypedFloat", "TypedInt", "TypedNdArray")}
)
