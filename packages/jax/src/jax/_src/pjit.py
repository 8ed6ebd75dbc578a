"""`jax._src.pjit`: names that Quax, Oryx and jaxns use."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__, {"bedrax.core.jitting": ("jit_p",), "bedrax.parallel.explicit": ("auto_axes",)}
)
