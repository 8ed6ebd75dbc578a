"""`jax.lib`: the version of jaxlib, which libraries compare."""

from bedrax.xla_backend.door.versions import jaxlib_version as __version__

__all__ = ["__version__"]
