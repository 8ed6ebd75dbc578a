"""The settings from launchers, variables and plugins, with simulated launchers and plugins."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from bedrax.processes import clusters, distributed
from bedrax.xla_backend import clients
from bedrax.xla_backend.door import runtime

PROGRAMS = Path(__file__).with_name("programs")


class World:
    """A communicator of mpi4py with three processes, two of them on this host."""

    size = 3

    def __init__(self, rank, sent):
        self.rank, self.sent = rank, sent

    def Split_type(self, kind):
        assert kind == "shared"
        return SimpleNamespace(rank=self.rank % 2, size=2 - self.rank // 2)

    def bcast(self, value):
        self.sent.append(value) if self.rank == 0 else None
        return self.sent[0]


def install_mpi4py(monkeypatch, world):
    module = ModuleType("mpi4py")
    version = lambda: "Open MPI v4.1.4, package: Debian\nmore"
    module.MPI = SimpleNamespace(COMM_WORLD=world, COMM_TYPE_SHARED="shared", Get_library_version=version)
    monkeypatch.setitem(sys.modules, "mpi4py", module)


def test_mpi4py(monkeypatch):
    sent = []
    found = []
    for rank in range(3):
        install_mpi4py(monkeypatch, World(rank, sent))
        found.append(clusters.detect("mpi4py", {}))
    assert [f[1:4] for f in found] == [(3, 0, 0), (3, 1, 1), (3, 2, 0)]
    ((address, run),) = {(f.coordinator_address, f.run) for f in found}
    assert (address, len(sent)) == (f"{sent[0][0]}:{clusters.ports(run)[0]}", 1)


@pytest.mark.parametrize(
    "env, seen",
    [
        ({"PMI_SIZE": "2", "PMI_RANK": "0"}, "PMI_SIZE is 2"),
        ({"OMPI_COMM_WORLD_SIZE": "4", "SLURM_NTASKS": "2"}, "OMPI_COMM_WORLD_SIZE is 4"),
        ({"SLURM_NTASKS": "2"}, "SLURM_NTASKS is 2"),
    ],
)
def test_a_process_that_mpi4py_finds_alone_is_an_error(env, seen, monkeypatch):
    world = World(0, [])
    world.size = 1
    install_mpi4py(monkeypatch, world)
    with pytest.raises(ValueError, match=f"mpi4py finds 1 process, but {seen}.*Open MPI v4.1.4, package: Debian"):
        clusters.detect("mpi4py", env)
    assert clusters.detect("mpi4py", {"OMPI_COMM_WORLD_SIZE": "1", "SLURM_NTASKS": "2"}).num_processes == 1


def test_a_missing_mpi4py_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError):
        clusters.detect("mpi4py", {})


SLURM = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "n1"}
STEP = {**SLURM, "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NODELIST": "n1"}


def test_launchers_come_in_an_order_and_can_be_left_out():
    both = {**STEP, "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
    assert clusters.detect(None, both).process_id == 1  # mpirun in a job of Slurm
    assert clusters.detect("slurm", both).process_id == 0
    assert clusters.detect("deactivate", both) == clusters.Cluster()
    given = distributed._settings("h:1", None, None, None, STEP)
    assert given[:3] == ("h:1", 2, 0) and given.run is None  # arguments have precedence
    ours = {**both, "JAX_PROCESS_ID": "1", "JAX_COORDINATOR_ADDRESS": "g:2", "JAX_NUM_PROCESSES": "4"}
    assert distributed._settings(None, None, None, None, ours)[:3] == ("g:2", 4, 1)


def open_mpi_4(job, rank=0, local_size=2):
    """The variables that Debian's Open MPI 4.1.4 sets. Its numbers of jobs are multiples of 65536."""
    return {
        "OMPI_MCA_orte_hnp_uri": f"{job << 16}.0;tcp://192.0.2.2:39647;tcp6://[fd00::2]:58869",
        "PMIX_NAMESPACE": str((job << 16) + 1),
        "PMIX_SERVER_URI2": f"{job << 16}.0;tcp4://127.0.0.1:60303",
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(local_size),
    }


def open_mpi_5(number, rank=0, local_size=2):
    """The variables that Open MPI 5.0.11 sets. It has the address of the daemon on each host, not of mpirun."""
    return {
        "PMIX_NAMESPACE": f"prterun-node-3-{number}@1",
        "PMIX_SERVER_URI2": f"prterun-node-3-{number}@0.0;tcp4://127.0.0.1:47531",
        "OMPI_COMM_WORLD_SIZE": "2",
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(local_size),
    }


def intel_mpi(number, rank=0, local_size=2):
    """The variables that Intel MPI 2021.18 sets."""
    return {
        "PMI_RANK": str(rank),
        "PMI_SIZE": "2",
        "MPI_LOCALRANKID": str(rank),
        "MPI_LOCALNRANKS": str(local_size),
        "I_MPI_HYDRA_UUID": f"{number:x}0000-d043-b82c-2c61-06006ebb0d1a",
    }


@pytest.mark.parametrize("variables", [open_mpi_4, open_mpi_5, intel_mpi])
def test_jobs_of_one_host_have_different_ports(variables):
    """Every job of Open MPI 4 had the port 49152."""
    found = [clusters.detect(None, variables(16000 + job)) for job in range(20)]
    assert len({f.run for f in found}) == 20 and len({f.coordinator_address for f in found}) > 18
    for job, cluster in enumerate(found):
        other = clusters.detect(None, variables(16000 + job, rank=1))
        assert other == cluster._replace(process_id=1, local_process_id=1)
        assert cluster.coordinator_address == f"localhost:{clusters.ports(cluster.run)[0]}"
        assert len(clusters.ports(cluster.run)) == 8


def test_hosts_of_mpi():
    host = lambda env: clusters.detect(None, env).coordinator_address
    assert host(open_mpi_4(7, local_size=1)).startswith("192.0.2.2:")
    assert host(open_mpi_5(7, local_size=1)).startswith("node-3:")
    only_six = {**open_mpi_4(7, local_size=1), "OMPI_MCA_orte_hnp_uri": "7.0;tcp6://[fd00::2]:58869"}
    assert host(only_six).startswith("[fd00::2]:")
    assert host(intel_mpi(7, local_size=1)) is None


def test_steps_and_restarts_of_a_job_have_different_ports():
    runs = {}
    for job in "78":
        for step in range(10):
            for restart in ({}, {"SLURM_RESTART_COUNT": "1"}):
                env = {**STEP, **restart, "SLURM_JOB_ID": job, "SLURM_STEP_ID": str(step)}
                found = clusters.detect(None, env)
                assert clusters.detect(None, {**env, "SLURM_PROCID": "1"}) == found._replace(process_id=1)
                runs[found.run] = found.coordinator_address
    assert len(runs) == 40 and len({*runs.values()}) > 38


def test_a_script_of_slurm_is_not_a_step():
    for env in (SLURM, {**STEP, "SLURM_STEP_ID": str(2**32 - 5)}):
        with pytest.raises(ValueError, match="not started by srun, and SLURM_NTASKS is 2: start the program by srun"):
            clusters.detect(None, env)
    alone = clusters.detect(None, {**SLURM, "SLURM_NTASKS": "1"})
    assert alone[1:3] == (1, 0)


MPICH = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}


def test_mpich_has_no_address():
    assert clusters.detect(None, MPICH)[:4] == (None, 2, 1, 1)
    assert distributed._settings("h:1", None, None, None, MPICH)[:3] == ("h:1", 2, 1)
    with pytest.raises(ValueError) as error:
        distributed._settings(None, None, None, None, MPICH)
    for words in ("MPICH", "process 1 of 2", "JAX_COORDINATOR_ADDRESS", "cluster_detection_method='mpi4py'"):
        assert words in str(error.value)


def test_mpich_in_a_job_of_slurm_has_the_address_of_its_step():
    """`mpiexec` starts its daemons by srun. Both processes inherit the variables of the daemon."""
    zero, one = (clusters.detect(None, {**STEP, **MPICH, "PMI_RANK": rank}) for rank in "01")
    assert zero[1:3] == (2, 0) and one[1:3] == (2, 1)
    assert zero.coordinator_address == one.coordinator_address == clusters.detect("slurm", STEP).coordinator_address
    by_srun = {**STEP, "PMI_RANK": "0", "PMI_SIZE": "2", "PMI_JOBID": "7.0"}  # srun --mpi=pmi2
    assert clusters.detect(None, by_srun) == clusters.detect("slurm", STEP)


def test_pods_use_all_their_devices():
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "2", "JAX_NUM_PROCESSES": "4"}
    found = clusters.detect(None, {**pod, "HOSTNAME": "train-2"})
    assert found.coordinator_address.startswith("train-0.train:") and found[1:4] == (4, 2, None)
    found = clusters.detect(None, {**pod, "HOSTNAME": "train-2", "JAX_KUBERNETES_SUBDOMAIN": "workers"})
    assert found.coordinator_address.startswith("train-0.workers:")
    with pytest.raises(ValueError, match="the variables of Kubernetes do not have it.*JAX_COORDINATOR_ADDRESS"):
        distributed._settings(None, None, None, None, {**pod, "HOSTNAME": "node7"})  # the network of the node


@pytest.mark.parametrize(
    "given, env, launcher, wanted",
    [
        (None, {}, None, None),
        (3, {}, 1, {3}),
        (np.int32(3), {}, 1, {3}),
        ([0, 2], {}, 1, {0, 2}),
        (None, {"JAX_LOCAL_DEVICE_IDS": "1,3"}, 2, {1, 3}),
        (None, {}, 2, {2}),
        # Slurm: `--gpus-per-node=2` and two tasks; `--gpus-per-task=1`; two of four for this task.
        (None, {"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_GPUS_ON_NODE": "2"}, 1, {1}),
        (None, {"CUDA_VISIBLE_DEVICES": "1", "SLURM_GPUS_ON_NODE": "2"}, 1, None),
        (None, {"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_GPUS_ON_NODE": "4"}, 0, None),
        (None, {"ROCR_VISIBLE_DEVICES": "3"}, 3, None),
        (None, {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, 3, {3}),
    ],
)
def test_the_accelerators_of_a_process(given, env, launcher, wanted, monkeypatch):
    monkeypatch.setattr(clients, "visible_accelerators", None)
    distributed._choose_devices(given, clusters.Cluster(local_process_id=launcher), env)
    assert clients.visible_accelerators == (None if wanted is None else frozenset(wanted))


def test_a_list_of_accelerators_that_has_no_numbers():
    with pytest.raises(ValueError, match=re.escape("JAX_LOCAL_DEVICE_IDS is a list of numbers ('0,1'), got 'gpu0'")):
        distributed._choose_devices(None, clusters.Cluster(), {"JAX_LOCAL_DEVICE_IDS": "gpu0"})


def test_an_address_to_listen_at_needs_the_address_for_others(monkeypatch):
    for name, value in STEP.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="give coordinator_address, too"):
        distributed.initialize(coordinator_bind_address="0.0.0.0:1234")


def test_a_plugin_gets_its_options_and_the_run(monkeypatch):
    calls = []
    fake = SimpleNamespace(
        pjrt_plugin_loaded=lambda name: False,
        load_pjrt_plugin_dynamically=lambda name, path: f"api of {path}",
        pjrt_plugin_initialized=lambda name: False,
        initialize_pjrt_plugin=lambda name: calls.append(name),
        make_c_api_client=lambda name, options, run: calls.append((options, run)),
    )
    monkeypatch.setattr(runtime, "xla_client", lambda: fake)
    monkeypatch.setattr(clients, "_factories", dict(clients._factories))
    assert clients.register_plugin("toy", library_path="toy.so", options=lambda: {"memory": 1}) == "api of toy.so"
    make, priority = clients._factories["toy"]
    assert priority == 400
    make()
    monkeypatch.setattr(clients, "run", clients.Run("the client", 2, 5))
    monkeypatch.setattr(clients, "visible_accelerators", frozenset({3, 1}))
    make()
    calls = [t for t in calls if t != "toy"]
    assert calls[0] == ({"memory": 1}, None)
    assert calls[1] == ({"memory": 1, "node_id": 2, "num_nodes": 5, "visible_devices": [1, 3]}, "the client")


PROGRAM = PROGRAMS / "platforms_of_devices.py"


@pytest.mark.parametrize(
    "env, words",
    [
        (
            {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "3"},
            ["['cpu', 'cpu', 'cpu']", "jax_num_cpu_devices", "before"],
        ),
        ({"JAX_PLATFORMS": "", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}, ["['cpu', 'cpu']"]),
        ({"JAX_PLATFORMS": "nonsense"}, ["RuntimeError", "Unknown backend: 'nonsense'", "cpu"]),
        ({"JAX_PLATFORMS": "cuda"}, ["RuntimeError", "'cuda'"]),
        ({"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "many"}, ["JAX_NUM_CPU_DEVICES", "many"]),
    ],
)
def test_platforms_and_counts_of_devices(env, words):
    clean = {k: v for k, v in os.environ.items() if k not in ("JAX_PLATFORMS", "JAX_NUM_CPU_DEVICES", "XLA_FLAGS")}
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, timeout=100, env={**clean, **env})
    output = done.stdout + done.stderr
    assert not [w for w in words if w not in output], output
