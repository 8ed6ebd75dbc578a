"""The version of the interface: that of upstream's release which it follows."""

__version__ = "0.10.2"
__version_info__ = (0, 10, 2)
