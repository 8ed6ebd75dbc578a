"""Values across the processes of a run. There is one process, in which they are all trivial.

With several processes (which are not supported yet) every function raises.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax import pytree
from bedrax.xla_backend.clients import process_count
from bedrax.xla_backend.placement import device_put
from bedrax.xla_backend.sharding import NamedSharding


def _one_process(name: str) -> None:
    if process_count() != 1:
        raise NotImplementedError(f"{name}: runs of several processes are not supported yet")


def sync_global_devices(name: str) -> None:
    """Wait until every process has called this with the same name."""
    _one_process("sync_global_devices")


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The source process's values (process 0's by default) as NumPy arrays, on every process."""
    _one_process("broadcast_one_to_all")
    return pytree.tree_map(np.asarray, in_tree)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """All processes' values as NumPy arrays, stacked along a new leading axis (`tiled`: concatenated).

    Arrays that are spread over several processes are gathered whole.
    """
    _one_process("process_allgather")
    return pytree.tree_map(lambda x: np.asarray(x) if tiled else np.asarray(x)[None], in_tree)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raise AssertionError unless all processes have equal values."""
    _one_process("assert_equal")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes should save and stop at this step. Without a coordinator nobody announces a preemption."""
    raise RuntimeError("there is no run of several processes in which a preemption could be announced")


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Arrays of this process as arrays over the mesh."""
    _one_process("host_local_array_to_global_array")
    specs = pytree.tree_broadcast_leaves(pspecs, local_inputs, is_leaf=lambda x: x is None)
    leaves, tree = pytree.tree_flatten(local_inputs)
    return pytree.tree_unflatten(
        tree, [device_put(x, NamedSharding(global_mesh, s)) for x, s in zip(leaves, specs, strict=True)]
    )


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """The parts of arrays over the mesh that this process holds: in one process, all of them."""
    _one_process("global_array_to_host_local_array")
    return global_inputs
