"""Devices as a topology: attached devices, or devices that a plug-in describes (`jax.experimental.topologies`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bedrax.parallel.device_meshes import create_device_mesh
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
    """The devices of a named topology, from the plug-in of a platform. They need not exist.

    Programs can be compiled for them. The package `libtpu` describes slices of TPUs.

    Args:
      topology_name: a generation and the number of chips along each axis, such as "v4:2x2x1", "v5e:4x4", "v5p:2x2x2" or
        "tpu7x:2x2x1".
      platform: by default the default platform.
      kwargs: options of the plug-in, for TPUs `num_slices` and `chips_per_host_bounds`.

    Raises:
      NotImplementedError: no plug-in of the platform is installed, or it describes no topologies.
      jax.errors.JaxRuntimeError: the plug-in does not support the topology, or an option.

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
    if not clients.describing(name):
        raise NotImplementedError(
            f"get_topology_desc: no installed plug-in describes devices of the platform {name!r}. The package libtpu describes"
            " those of 'tpu', such as 'v5e:2x2'"
        )
    described = runtime.default_topology(name, topology_name, kwargs)
    return TopologyDescription(described._make_compile_only_devices())


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """A mesh over the devices of a topology, whose axes follow the connections of the devices.

    Args:
      topo: the devices.
      mesh_shape: the number of devices along each axis; axes with more communication come last.
      axis_names: the names of the axes.
      contiguous_submeshes: the devices of each process are a block of the mesh.

    Raises:
      ValueError: the shape has another number of devices; see also `mesh_utils.create_device_mesh`.

    Examples:

      >>> from jax.experimental import topologies

      >>> topo = topologies.get_attached_topology("cpu")
      >>> topologies.make_mesh(topo, (len(topo.devices), 1), ("rows", "columns")).axis_names
      ('rows', 'columns')
    """
    devices = create_device_mesh(mesh_shape, topo.devices, contiguous_submeshes=contiguous_submeshes)
    return Mesh(devices, tuple(axis_names))
