"""The environment variables of launchers of several processes: the processes of the run, and the address of process
0."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Mapping
from typing import NamedTuple

_PORTS = range(49152, 65536)  # the dynamic ports of RFC 6335


class Cluster(NamedTuple):
    """The processes of a run, from a launcher. An unknown field is None.

    Attributes:
      coordinator_address: host and port of process 0.
      num_processes: the number of processes.
      process_id: the number of this process.
      local_process_id: the number of this process on its host. It takes this device if there is one per process.
    """

    coordinator_address: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_process_id: int | None = None


def number(env: Mapping[str, str], *names: str) -> int | None:
    for name in names:
        if name in env:
            try:
                return int(env[name])
            except ValueError:
                raise ValueError(f"the environment variable {name} is a number, got {env[name]!r}") from None
    return None


def _port(job: str) -> int:
    """A port derived from the name of a job: the same for its processes, and rarely the same for other jobs."""
    digits = re.findall(r"\d+", job)
    return _PORTS[int("".join(digits) or sum(job.encode())) % len(_PORTS)]


def first_host(nodes: str) -> str:
    """The first host of a list in Slurm's form: ``a1,b``, ``a[1-3,7]``, ``a[01-10]-x``."""
    head = re.match(r"(?:[^,\[]|\[[^\]]*\])+", nodes)
    if head is None:
        raise ValueError(f"no host in the list of nodes {nodes!r}")
    return re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", head[0])


def _slurm(env: Mapping[str, str]) -> Cluster | None:
    if not {"SLURM_JOB_ID", "SLURM_PROCID"} <= env.keys():
        return None
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST")
    return Cluster(
        f"{first_host(nodes)}:{_port(env['SLURM_JOB_ID'])}" if nodes else None,
        number(env, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
        number(env, "SLURM_PROCID"),
        number(env, "SLURM_LOCALID"),
    )


def _open_mpi(env: Mapping[str, str]) -> Cluster | None:
    if "OMPI_COMM_WORLD_RANK" not in env:
        return None
    # The launcher's address: "<job>.0;tcp://<address>,...:<port>", or with PMIx "<job>.0;tcp4://...".
    uri = env.get("OMPI_MCA_orte_hnp_uri") or next((env[n] for n in sorted(env) if n.startswith("PMIX_SERVER_URI")), "")
    found = re.match(r"(?P<job>[^;]*);tcp[46]?://\[?(?P<host>[^,:\]/]+)", uri)
    address = f"{found['host']}:{_port(found['job'])}" if found else None
    return Cluster(
        address,
        number(env, "OMPI_COMM_WORLD_SIZE"),
        number(env, "OMPI_COMM_WORLD_RANK"),
        number(env, "OMPI_COMM_WORLD_LOCAL_RANK"),
    )


def _kubernetes(env: Mapping[str, str]) -> Cluster | None:
    """An indexed job: pods have the names ``<job>-<index>`` in the domain of a headless service."""
    index = number(env, "JOB_COMPLETION_INDEX")
    if index is None or "KUBERNETES_SERVICE_HOST" not in env:
        return None
    name, _, domain = (env.get("HOSTNAME") or socket.gethostname()).partition(".")
    job = re.sub(rf"-{index}(-\w+)?$", "", name)
    domain = domain or env.get("JAX_KUBERNETES_SUBDOMAIN", job)
    return Cluster(f"{job}-0.{domain}:{_port(job)}", number(env, "JAX_NUM_PROCESSES"), index, 0)


def _mpi4py(env: Mapping[str, str]) -> Cluster | None:
    """Only by name: an import of mpi4py starts MPI."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    local = world.Split_type(MPI.COMM_TYPE_SHARED)
    address = None
    if world.rank == 0:
        with socket.socket() as s:
            s.bind(("", 0))
            address = f"{socket.gethostname()}:{s.getsockname()[1]}"
    return Cluster(world.bcast(address), world.size, world.rank, local.rank)


METHODS: dict[str, Callable[[Mapping[str, str]], Cluster | None]] = {
    "slurm": _slurm,
    "ompi": _open_mpi,
    "k8s": _kubernetes,
    "mpi4py": _mpi4py,
}


def detect(method: str | None = None, env: Mapping[str, str] = os.environ) -> Cluster:
    """The launcher's description of this run; empty without a launcher, or with the method ``"deactivate"``.

    Args:
      method: a name in `METHODS`. Default: the first one whose variables are set, except ``mpi4py``.
      env: the environment.

    Raises:
      ValueError: the method does not exist, or its variables are not set.
    """
    if method == "deactivate":
        return Cluster()
    if method is None:
        return next(filter(None, (METHODS[m](env) for m in ("slurm", "ompi", "k8s"))), Cluster())
    if method.lower() not in METHODS:
        raise ValueError(f"cluster_detection_method is one of {[*METHODS, 'deactivate']}, got {method!r}")
    found = METHODS[method.lower()](env)
    if found is None:
        raise ValueError(
            f"cluster_detection_method={method!r}: its variables are not in the environment of this process"
        )
    return found
