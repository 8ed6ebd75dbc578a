"""`jax._src.numpy.ufuncs`: a name that Esquilax uses, and with it Jumanji."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.numpy.universal": ("ufunc",)})
