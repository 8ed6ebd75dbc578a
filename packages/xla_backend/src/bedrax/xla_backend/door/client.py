"""jaxlib's older module of clients, for libraries that ask it for a class or a number (`jax._src.lib`); nobody else does."""

from jaxlib import xla_client

jaxlib_extension_version = getattr(xla_client, "_version", 0)  # counts the changes of jaxlib's interface

__all__ = ["jaxlib_extension_version", "xla_client"]
