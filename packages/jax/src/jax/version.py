"""The version of the interface: that of upstream's release which it follows."""

__version__ = "0.12.0.1"
__version_info__ = (0, 12, 0, 1)
