"""The settings from launchers, variables and plugins, with simulated launchers and plugins."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

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
        return SimpleNamespace(rank=self.rank % 2)

    def bcast(self, value):
        self.sent.append(value) if self.rank == 0 else None
        return self.sent[0]


def test_mpi4py(monkeypatch):
    sent = []
    found = []
    for rank in range(3):
        module = ModuleType("mpi4py")
        module.MPI = SimpleNamespace(COMM_WORLD=World(rank, sent), COMM_TYPE_SHARED="shared")
        monkeypatch.setitem(sys.modules, "mpi4py", module)
        found.append(clusters.detect("mpi4py", {}))
    assert [f[1:] for f in found] == [(3, 0, 0), (3, 1, 1), (3, 2, 0)]
    (address,) = {f.coordinator_address for f in found}
    assert address == sent[0] and 0 < int(address.rpartition(":")[2]) < 65536


def test_mpi4py_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError):
        clusters.detect("mpi4py", {})


def test_launchers_come_in_an_order_and_can_be_left_out():
    slurm = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "n1"}
    both = {**slurm, "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
    assert clusters.detect(None, both).process_id == 0
    assert clusters.detect("ompi", both).process_id == 1
    assert clusters.detect("deactivate", both) == clusters.Cluster()
    assert distributed._settings("h:1", None, None, None, both)[:3] == ("h:1", 2, 0)  # arguments have precedence
    ours = {**both, "JAX_PROCESS_ID": "1", "JAX_COORDINATOR_ADDRESS": "g:2", "JAX_NUM_PROCESSES": "4"}
    assert distributed._settings(None, None, None, None, ours)[:3] == ("g:2", 4, 1)


@pytest.mark.parametrize(
    "given, env, launcher, wanted",
    [
        (None, {}, None, None),
        (3, {}, 1, {3}),
        ([0, 2], {}, 1, {0, 2}),
        (None, {"JAX_LOCAL_DEVICE_IDS": "1,3"}, 2, {1, 3}),
        (None, {}, 2, {2}),
    ],
)
def test_which_accelerators_of_the_host(given, env, launcher, wanted, monkeypatch):
    monkeypatch.setattr(clients, "visible_accelerators", None)
    distributed._choose_devices(given, clusters.Cluster(local_process_id=launcher), env)
    assert clients.visible_accelerators == (None if wanted is None else frozenset(wanted))


def test_what_a_plugin_is_calls_of_the_run(monkeypatch):
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
