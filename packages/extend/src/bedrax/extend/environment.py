"""What the system runs on, and values of users that compiled functions depend on."""

from __future__ import annotations

import itertools
import platform
import sys
from collections.abc import Hashable
from typing import Any

from bedrax.core import config

_numbers = itertools.count()


def make_user_context(default_value: Hashable = None) -> Any:
    """A value that functions may depend on: they are traced again where it is another one.

    Returns:
      an object with `value`, and ``context(value)``, a context manager that sets it in this thread.
    """
    return config.flag(
        f"bedrax_user_context_{next(_numbers)}",
        default_value,
        "a user's context",
        kind=object,
        optional=True,
        keyed=True,
    )


def print_environment_info(return_string: bool = False) -> str | None:
    """Versions and devices, as bug reports need them: printed, or returned."""
    import numpy

    from bedrax.xla_backend import clients, jaxlib_door

    devices = clients.devices()
    jax = sys.modules.get("jax")
    lines = [
        f"jax:    {getattr(jax, '__version__', 'not imported')} (Bedrax)",
        f"jaxlib: {'.'.join(map(str, jaxlib_door.jaxlib_version))}",
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
