"""Devices as a topology: attached devices, or devices that a plug-in describes (`jax.experimental.topologies`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bedrax.parallel.meshes import Mesh
from bedrax.xla_backend import clients
from bedrax.xla_backend.door import runtime

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription:
    """A list of devices in `devices`. They need not be attached.

    Examples:

      >>> from jax.experimental import topologies

      >>> topo = topologies.get_attached_topology("cpu")
      >>> isinstance(topo, topologies.TopologyDescription), topo.devices == jax.devices("cpu")
      (True, True)
    """

    def __init__(self, devices: list[Any]) -> None:
        self.devices = devices

    def __repr__(self) -> str:
        return f"TopologyDescription({len(self.devices)} devices)"


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The attached devices of a platform (by default the default platform).

    Examples:

      >>> from jax.experimental import topologies

      >>> topologies.get_attached_topology("cpu").devices[0].platform
      'cpu'
    """
    return TopologyDescription(clients.devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any) -> TopologyDescription:
    """The devices of a named topology, from the plug-in of a platform. `kwargs` are options of the plug-in.

    Raises:
      NotImplementedError: the platform has no topologies.

    Examples:

      >>> from jax.experimental import topologies

      >>> try:
      ...     topologies.get_topology_desc("v5e:2x2", "cpu")
      ... except NotImplementedError as error:
      ...     print("cpu" in str(error))
      ...
      True
    """
    name = platform or clients.default_backend()
    try:
        described = runtime.default_topology(name, topology_name, kwargs)
    except Exception as error:
        raise NotImplementedError(
            f"the platform {name!r} describes no topology {topology_name!r} of devices that are not at hand: {error}"
        ) from None
    return TopologyDescription(described._make_compile_only_devices())


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """A mesh over the devices of a topology, in their order.

    Args:
      contiguous_submeshes: must be False. The option concerns the wiring of TPUs.

    Examples:

      >>> from jax.experimental import topologies

      >>> topo = topologies.get_attached_topology("cpu")
      >>> topologies.make_mesh(topo, (len(topo.devices), 1), ("rows", "columns")).axis_names
      ('rows', 'columns')
    """
    if contiguous_submeshes:
        raise NotImplementedError("make_mesh takes devices in their order, and knows no contiguous_submeshes")
    if math.prod(mesh_shape) != len(topo.devices):
        raise ValueError(
            f"a mesh of shape {tuple(mesh_shape)} needs {math.prod(mesh_shape)} devices, {topo} has others"
        )
    return Mesh(np.array(topo.devices, object).reshape(tuple(mesh_shape)), tuple(axis_names))
