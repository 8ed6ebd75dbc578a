"""Unsupported names of `jax.experimental.thunky`."""

from bedrax.extend.refused import names_of

__getattr__, __all__ = names_of("jax.experimental.thunky")
