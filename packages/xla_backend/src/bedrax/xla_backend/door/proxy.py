"""jaxlib's client of an IFRT proxy: devices of another machine."""

from __future__ import annotations

from typing import Final

from bedrax.pytree.engine import load_whole

ifrt_proxy: Final = load_whole("jaxlib._ifrt_proxy")

__all__ = ["ifrt_proxy"]
