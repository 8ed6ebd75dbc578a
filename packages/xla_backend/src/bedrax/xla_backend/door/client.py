"""jaxlib's older module of clients, for libraries that ask it for a class or a number (`jax._src.lib`); nobody else does."""

from __future__ import annotations

from typing import Final

from jaxlib import xla_client

jaxlib_extension_version: Final = xla_client._version  # counts the changes of jaxlib's interface

__all__ = ["jaxlib_extension_version", "xla_client"]
