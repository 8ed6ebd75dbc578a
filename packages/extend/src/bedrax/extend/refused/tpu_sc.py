"""Unsupported names of `jax.experimental.pallas.tpu_sc`."""

from bedrax.extend.refused import names_of

__getattr__, __all__ = names_of("jax.experimental.pallas.tpu_sc")
