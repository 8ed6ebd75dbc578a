"""What one process can answer, and what it refuses."""

import numpy as np
import pytest

from bedrax.parallel import Mesh, PartitionSpec
from bedrax.processes import array_serialization, colocated, distributed, multihost
from bedrax.xla_backend import clients


def test_there_is_one_process():
    assert not distributed.is_initialized()
    assert (distributed.global_state.process_id, distributed.global_state.num_processes) == (0, 1)
    with pytest.raises(NotImplementedError, match="several processes"):
        distributed.initialize("localhost:1234", 2, 0)


def test_values_of_all_processes_are_this_one_s():
    tree = {"a": np.arange(3), "b": np.float32(2)}
    multihost.sync_global_devices("here")
    multihost.assert_equal(tree)
    np.testing.assert_array_equal(multihost.broadcast_one_to_all(tree)["a"], [0, 1, 2])
    assert multihost.process_allgather(tree)["a"].shape == (1, 3)
    assert multihost.process_allgather(tree, tiled=True)["a"].shape == (3,)
    with pytest.raises(RuntimeError, match="no run of several processes"):
        multihost.reached_preemption_sync_point(1)


def test_arrays_over_a_mesh():
    mesh = Mesh(np.array(clients.devices("cpu")[:1]), ("x",))
    whole = multihost.host_local_array_to_global_array({"a": np.arange(4.0)}, mesh, PartitionSpec("x"))
    assert whole["a"].sharding.spec == PartitionSpec("x")
    part = multihost.global_array_to_host_local_array(whole, mesh, PartitionSpec("x"))
    np.testing.assert_array_equal(np.asarray(part["a"]), np.arange(4.0))


def test_the_cpu_beside_a_cpu_is_itself():
    devices = tuple(clients.devices("cpu"))
    assert colocated.colocated_cpu_devices(devices) == devices
    mesh = Mesh(np.array(devices[:1]), ("x",))
    assert colocated.colocated_cpu_devices(mesh).axis_names == ("x",)
    for refused in (colocated.colocated_python, colocated.colocated_python_class):
        with pytest.raises(NotImplementedError, match="no remote hosts"):
            refused(len)


def test_background_work_passes_its_error_on_once():
    manager = array_serialization.AsyncManager()

    def fail():
        raise OSError("disk full")

    manager._start(fail)
    with pytest.raises(OSError, match="disk full"):
        manager.wait_until_finished()
    manager.wait_until_finished()
