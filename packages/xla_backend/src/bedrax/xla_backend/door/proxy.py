"""jaxlib's client of an IFRT proxy: devices of another machine."""

from jaxlib import _ifrt_proxy as ifrt_proxy

__all__ = ["ifrt_proxy"]
