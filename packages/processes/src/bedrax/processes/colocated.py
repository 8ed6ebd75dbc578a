"""Python run beside the devices of remote hosts. There are no remote hosts, so only the local part exists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax.core import dtypes
from bedrax.xla_backend import clients
from bedrax.xla_backend.door.runtime import DeviceList


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """The CPU devices on the hosts of the given devices (or the mesh of them).

    Raises:
      ValueError: there is no CPU device beside one of them.
    """
    if hasattr(devices_or_mesh, "devices"):
        mesh = devices_or_mesh
        flat = colocated_cpu_devices(tuple(mesh.devices.flat))
        array = np.empty(mesh.devices.shape, dtype=object)
        array.flat = list(flat)
        return type(mesh)(array, mesh.axis_names)
    devices: Sequence = tuple(devices_or_mesh)
    by_process: dict[int, list] = {}
    for d in clients.devices("cpu"):
        by_process.setdefault(d.process_index, []).append(d)
    out = []
    for d in devices:
        if d.platform == "cpu":
            out.append(d)
        elif d.process_index in by_process:
            beside = by_process[d.process_index]
            out.append(beside[d.id % len(beside)])
        else:
            raise ValueError(f"no CPU device stands beside {d}: its process has none")
    return tuple(out)


def colocated_python(fun: Callable) -> Callable:
    """Not supported: raises NotImplementedError."""
    raise NotImplementedError("colocated_python: there are no remote hosts to run Python on")


def colocated_python_class(cls: type) -> type:
    """Not supported: raises NotImplementedError."""
    raise NotImplementedError("colocated_python_class: there are no remote hosts to run Python on")


def is_prng_key_dtype(dtype: Any) -> bool:
    """Whether the dtype is that of typed keys."""
    return dtypes.issubdtype(dtype, dtypes.prng_key)


__all__ = ["DeviceList", "colocated_cpu_devices", "colocated_python", "colocated_python_class", "is_prng_key_dtype"]
