"""jaxlib's client of an IFRT proxy: devices of another machine."""

from bedrax.pytree.engine import load_whole

ifrt_proxy = load_whole("jaxlib._ifrt_proxy")

__all__ = ["ifrt_proxy"]
