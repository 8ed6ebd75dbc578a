"""Meshes for tests of libraries: with the number of devices that a test needs, or the test is skipped.

Needed by the tests that the public guide to checkpointing shows (`jax._src.test_util.create_mesh`).
"""

from __future__ import annotations

import math
import unittest
from collections.abc import Sequence
from typing import Any

from bedrax.parallel import AxisType, Mesh
from bedrax.xla_backend import clients, sharding

__all__ = ["create_mesh"]


def create_mesh(mesh_shape: Sequence[int], axis_names: Any, *, axis_types: Any = None) -> Mesh:
    """A mesh over the first devices, in their order.

    Args:
      mesh_shape, axis_names: size and name of each axis.
      axis_types: one per axis; all `Auto` if not given.

    Raises:
      unittest.SkipTest: there are too few devices.
    """
    needed, there = math.prod(mesh_shape), clients.device_count()
    if there < needed:
        raise unittest.SkipTest(f"a mesh of shape {tuple(mesh_shape)} needs {needed} devices, there are {there}")
    return sharding.make_mesh(mesh_shape, axis_names, axis_types or (AxisType.Auto,) * len(mesh_shape))
