"""jaxlib's older module of clients, which only `jax._src.lib` uses: other libraries read a class and a number there."""

from __future__ import annotations

from typing import Final

from jaxlib import xla_client

jaxlib_extension_version: Final = xla_client._version  # counts the changes of jaxlib's interface

__all__ = ["jaxlib_extension_version", "xla_client"]
