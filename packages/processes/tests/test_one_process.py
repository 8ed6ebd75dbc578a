"""The functions in a run of one process, and their errors."""

import os
import re

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.core import config
from bedrax.core.avals import ShapedArray
from bedrax.core.staging import make_jaxpr
from bedrax.parallel import Mesh, PartitionSpec
from bedrax.processes import array_serialization, clusters, colocated, distributed, multihost
from bedrax.xla_backend import NamedSharding, clients, jit
from bedrax.xla_backend.door import versions


def test_there_is_one_process():
    assert not distributed.is_initialized()
    assert (distributed.global_state.process_id, distributed.global_state.num_processes) == (0, 1)
    distributed.shutdown()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "coordinator_address is not given"),
        ({"coordinator_address": "here:1"}, "num_processes is not given"),
        ({"coordinator_address": "here:1", "num_processes": 2}, "process_id is not given"),
        ({"coordinator_address": "here", "num_processes": 2, "process_id": 0}, "'host:port', got 'here'"),
        ({"coordinator_address": "here:1", "num_processes": 2, "process_id": 2}, "from 0 to num_processes - 1"),
        ({"cluster_detection_method": "slurm"}, "its variables are not in the environment"),
        ({"cluster_detection_method": "none"}, "is one of"),
    ],
)
def test_missing_settings_of_a_run_are_errors(given, message, monkeypatch):
    for name in list(os.environ):
        if name.startswith(("SLURM_", "OMPI_", "PMI_", "JAX_NUM_PRO", "JAX_PROCESS", "JAX_COORD", "JOB_COMPLETION")):
            monkeypatch.delenv(name)
    with pytest.raises(ValueError, match=re.escape(message)):
        distributed.initialize(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mtls_cert_file": __file__}, "mtls_key_file is missing"),
        ({"mtls_peer_uri_prefix": "spiffe://a/"}, "needs certificates"),
        ({"verify_secure_credentials": True}, "there are none"),
        ({"mtls_cert_file": "no", "mtls_key_file": "no", "mtls_ca_file": "no"}, "which does not exist"),
        (
            dict.fromkeys(("mtls_cert_file", "mtls_key_file", "mtls_ca_file"), __file__)
            | {"mtls_peer_uri_prefix": "spiffe://a"},
            "ends with '/'",
        ),
    ],
)
def test_certificates_are_complete_before_anything_is_connected(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        distributed.initialize("localhost:1", 1, 0, **given)


def test_mutual_tls_without_support_of_jaxlib_is_an_error():
    files = dict.fromkeys(("mtls_cert_file", "mtls_key_file", "mtls_ca_file"), __file__)
    if versions.has("mutual TLS among processes"):
        assert distributed._credentials(True, **files, mtls_peer_uri_prefix=None) == {
            **files,
            "verify_secure_credentials": True,
        }
    else:
        with pytest.raises(NotImplementedError, match="jaxlib 0.12 has"):
            distributed.initialize("localhost:1", 1, 0, **files)


def test_certificates_of_options():
    join = lambda: distributed.initialize("localhost:1", 1, 0)
    files = {f"jax_mtls_{name}_file": __file__ for name in ("cert", "key", "ca")}
    with config.overriding(jax_distributed_verify_secure_credentials=True):
        with pytest.raises(ValueError, match="there are none"):
            join()
        for missing in files:
            given = {name: value for name, value in files.items() if name != missing}
            with config.overriding(**given), pytest.raises(ValueError, match=f"{missing[4:]} is missing"):
                join()
    with (
        config.overriding(**files, jax_mtls_peer_uri_prefix="spiffe://a"),
        pytest.raises(ValueError, match="ends with"),
    ):
        join()


def test_a_run_is_joined_before_devices_are_used():
    clients.devices()
    with pytest.raises(RuntimeError, match="before the first computation"):
        distributed.initialize("localhost:1", 1, 0)
    with pytest.raises(NotImplementedError, match="slice_index"):
        distributed.initialize("localhost:1", 1, 0, slice_index=0)


SLURM = {
    "SLURM_JOB_ID": "1234",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "gpu[03-05,9]-x,b7",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
}
OPEN_MPI = {
    "OMPI_MCA_orte_hnp_uri": "77.0;tcp://10.0.0.5,192.168.0.5:3456",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
}
KUBERNETES = {
    "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    "JOB_COMPLETION_INDEX": "2",
    "HOSTNAME": "train-2.workers",
    "JAX_NUM_PROCESSES": "4",
}


@pytest.mark.parametrize(
    ("env", "host", "rest"),
    [
        (SLURM, "gpu03-x", (8, 5, 1)),
        (OPEN_MPI, "10.0.0.5", (4, 3, 0)),
        (KUBERNETES, "train-0.workers", (4, 2, None)),
        ({}, None, (None, None, None)),
    ],
)
def test_settings_are_read_from_launchers(env, host, rest):
    found = clusters.detect(None, env)
    assert found[1:4] == rest
    if host is not None:
        name, port = found.coordinator_address.split(":")
        assert name == host and 61000 <= int(port) < 65536
        assert clusters.detect(None, env) == found


@pytest.mark.parametrize(
    ("nodes", "first"), [("a", "a"), ("a1,b", "a1"), ("n[7]", "n7"), ("n[1-3],m", "n1"), ("r[2,5]c[1-4]", "r2c1")]
)
def test_the_first_host_of_a_list(nodes, first):
    assert clusters.first_host(nodes) == first


def test_a_variable_that_is_no_number():
    with pytest.raises(ValueError, match="SLURM_PROCID is a number, got 'x'"):
        clusters.detect(None, {**SLURM, "SLURM_PROCID": "x"})


def test_values_of_all_processes_are_this_one_s():
    tree = {"a": np.arange(3), "b": np.float32(2)}
    multihost.sync_global_devices("here")
    multihost.assert_equal(tree)
    np.testing.assert_array_equal(multihost.broadcast_one_to_all(tree)["a"], [0, 1, 2])
    assert multihost.process_allgather(tree)["a"].shape == (1, 3)
    assert multihost.process_allgather(tree["a"], tiled=True).shape == (3,)
    with pytest.raises(ValueError, match="a scalar has none"):
        multihost.process_allgather(tree, tiled=True)
    with pytest.raises(RuntimeError, match="no run of several processes"):
        multihost.reached_preemption_sync_point(1)


def test_arrays_over_a_mesh():
    mesh = Mesh(np.array(clients.devices("cpu")[:1]), ("x",))
    whole = multihost.host_local_array_to_global_array({"a": np.arange(4.0)}, mesh, PartitionSpec("x"))
    assert whole["a"].sharding.spec == PartitionSpec("x")
    part = multihost.global_array_to_host_local_array(whole, mesh, PartitionSpec("x"))
    np.testing.assert_array_equal(np.asarray(part["a"]), np.arange(4.0))


def test_the_colocated_cpu_of_a_cpu_is_itself():
    devices = tuple(clients.devices("cpu"))
    assert colocated.colocated_cpu_devices(devices) == devices
    mesh = Mesh(np.array(devices[:1]), ("x",))
    assert colocated.colocated_cpu_devices(mesh).axis_names == ("x",)


def test_background_work_passes_its_error_on_once():
    manager = array_serialization.AsyncManager()

    def fail():
        raise OSError("disk full")

    manager._start(fail)
    with pytest.raises(OSError, match="disk full"):
        manager.wait_until_finished()
    manager.wait_until_finished()


def one_device():
    return Mesh(np.array(clients.devices("cpu")[:1]), ("i",)), PartitionSpec("i")


def test_local_and_global_arrays_are_operations():
    mesh, spec = one_device()
    there = lambda x: multihost.host_local_array_to_global_array(x, mesh, spec)
    back = lambda x: multihost.global_array_to_host_local_array(x, mesh, spec)
    x = np.arange(4, dtype=np.float32)
    names = [eqn.primitive for eqn in make_jaxpr(lambda x: back(there(x)))(x).eqns]
    assert names == [multihost.host_local_array_to_global_array_p, multihost.global_array_to_host_local_array_p]
    np.testing.assert_array_equal(jit(lambda x: back(there(x)))(x), x)
    assert there(x).sharding == NamedSharding(mesh, spec)
    np.testing.assert_allclose(grad(lambda x: lax.reduce_sum(lax.mul(back(there(x)), x), (0,)))(x), 2 * x)
    rows = vmap(there)(np.stack([x, x]))
    np.testing.assert_array_equal(rows, [x, x])
    assert rows.sharding.spec == PartitionSpec(None, "i")
    split = vmap(lambda x: multihost.host_local_array_to_global_array(x, mesh, PartitionSpec()), spmd_axis_name="i")
    assert split(np.stack([x, x])).sharding.spec == PartitionSpec("i")
    rows, dim = multihost.ltg_batcher(False, None, (np.stack([x, x]),), (0,), mesh, spec)
    assert rows.sharding.spec == PartitionSpec(None, "i") and dim == 0
    np.testing.assert_array_equal(multihost.global_array_to_host_local_array_impl(x, global_mesh=mesh, pspec=spec), x)
    np.testing.assert_array_equal(multihost.host_local_array_to_global_array_impl(x, global_mesh=mesh, pspec=spec), x)


class MeshOfTwo:
    """Stands for a mesh over two processes, of which this one has a device."""

    def __init__(self, mesh):
        self.local_mesh, self.size = mesh, 2


def test_types_of_local_and_global_arrays(monkeypatch):
    mesh, spec = one_device()
    monkeypatch.setattr(
        multihost, "_parts", lambda m, spec, ndim: (2 if type(m) is MeshOfTwo else 1,) + (1,) * (ndim - 1)
    )
    there, back = multihost.ltg_abstract_eval, multihost.gtl_abstract_eval
    params = dict(global_mesh=MeshOfTwo(mesh), pspec=spec)
    here = ShapedArray((3, 5), np.float32)
    assert there(here, **params) == ShapedArray((6, 5), np.float32) and back(there(here, **params), **params) == here
    with pytest.raises(NotImplementedError, match="compiled program are global"):
        multihost._same(there)(here, **params)
