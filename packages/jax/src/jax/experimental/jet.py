"""`jax.experimental.jet`: Taylor mode."""

from bedrax.autodiff.taylor import jet as jet

__all__ = ["jet"]
