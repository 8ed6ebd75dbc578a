"""Versions and devices of the running system."""

from __future__ import annotations

import platform
import sys

import numpy

from bedrax.xla_backend import clients
from bedrax.xla_backend.door import runtime


def print_environment_info(return_string: bool = False) -> str | None:
    """Print (or return) the versions and devices for a bug report.

    Examples:

      >>> "jax:" in jax.print_environment_info(return_string=True)
      True
    """
    devices = clients.devices()
    jax = sys.modules.get("jax")
    lines = [
        f"jax:    {getattr(jax, '__version__', 'not imported')} (Bedrax)",
        f"jaxlib: {runtime.jaxlib_version}",
        f"numpy:  {numpy.__version__}",
        f"python: {sys.version}",
        f"device info: {devices[0].device_kind}-{len(devices)}, {len(clients.local_devices())} local devices",
        f"process_count: {clients.process_count()}",
        f"platform: {platform.uname()}",
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None
