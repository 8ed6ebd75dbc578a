"""Modules of jaxlib that only `jax._src.lib` uses: other libraries and public pages read them there."""

from __future__ import annotations

from typing import Final

from jaxlib import xla_client

from bedrax.pytree.engine import load_whole

jaxlib_extension_version: Final = xla_client._version  # counts the changes of jaxlib's interface

jax_mlir_ext: Final = load_whole("jaxlib.mlir._mlir_libs._mlir", "jaxlib.mlir._mlir_libs._jax_mlir_ext")

__all__ = ["jax_mlir_ext", "jaxlib_extension_version", "xla_client"]
