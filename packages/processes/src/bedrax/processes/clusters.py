"""The environment variables of launchers of several processes: the processes of the run, and the address of process
0.

Launchers are often nested: a batch job of Slurm calls ``mpirun``, and its processes inherit variables of Slurm that
describe another process. So the launchers of MPI come first, and Slurm's variables count where Slurm started the process.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import uuid
from collections.abc import Callable, Mapping
from typing import NamedTuple

_PORTS = range(61000, 65536)  # above those that Linux gives to outgoing connections
_TRIES = 8
_FIRST_STEP_OF_SLURM = 0xFFFFFF00  # its own steps, as for the script of a batch job, have such numbers
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")  # the innermost launcher first


class Cluster(NamedTuple):
    """The processes of a run, from a launcher. An unknown field is None.

    Attributes:
      coordinator_address: host and port of process 0.
      num_processes: the number of processes.
      process_id: the number of this process.
      local_process_id: the number of this process on its host. It takes this device if there is one per process.
      run: the name of the run, if the port follows from it. Other runs on the same hosts have other names. If the port
        is in use, process 0 listens at a later one of `ports`.
      launcher: the name of the launcher.
    """

    coordinator_address: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_process_id: int | None = None
    run: str | None = None
    launcher: str | None = None


def number(env: Mapping[str, str], *names: str) -> int | None:
    for name in names:
        if name in env:
            try:
                return int(env[name])
            except ValueError:
                raise ValueError(f"the environment variable {name} is a number, got {env[name]!r}") from None
    return None


def ports(run: str) -> list[int]:
    """The ports of a run, in the order in which process 0 tries them.

    All processes of a run derive the same ports. Two runs rarely have the same first one.
    """
    digest = hashlib.sha256(run.encode()).digest()
    found = (int.from_bytes(digest[i : i + 2]) for i in range(0, len(digest), 2))
    return list(dict.fromkeys(_PORTS[n % len(_PORTS)] for n in found))[:_TRIES]


def _at(host: str | None, run: str | None) -> str | None:
    """The address of process 0, if its host and the name of the run are known."""
    if not host or not run:
        return None
    return f"[{host}]:{ports(run)[0]}" if ":" in host else f"{host}:{ports(run)[0]}"


def first_host(nodes: str) -> str:
    """The first host of a list in Slurm's form: ``a1,b``, ``a[1-3,7]``, ``a[01-10]-x``."""
    head = re.match(r"(?:[^,\[]|\[[^\]]*\])+", nodes)
    if head is None:
        raise ValueError(f"no host in the list of nodes {nodes!r}")
    return re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", head[0])


def _slurm(env: Mapping[str, str]) -> Cluster | None:
    """A step of a job, which `srun` starts. The script of a batch job runs as one process outside of all steps."""
    if not {"SLURM_JOB_ID", "SLURM_PROCID"} <= env.keys():
        return None
    count = number(env, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    job, step = env["SLURM_JOB_ID"], number(env, "SLURM_STEP_ID")
    in_step = step is not None and step < _FIRST_STEP_OF_SLURM
    if not in_step and count not in (None, 1):
        raise ValueError(
            f"this process of the Slurm job {job} was not started by srun, and SLURM_NTASKS is {count}: start the program by"
            " srun, which starts this number of processes"
        )
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST")
    # A job that is started again has the same numbers of job and step. Processes of its last run may still be ending.
    run = f"Slurm job {job} step {step} restart {env.get('SLURM_RESTART_COUNT', 0)}"
    host = first_host(nodes) if nodes else None
    process, local = number(env, "SLURM_PROCID"), number(env, "SLURM_LOCALID")
    return Cluster(_at(host, run), count, process, local, run, "Slurm")


def _open_mpi(env: Mapping[str, str]) -> Cluster | None:
    if "OMPI_COMM_WORLD_RANK" not in env:
        return None
    count, on_host = number(env, "OMPI_COMM_WORLD_SIZE"), number(env, "OMPI_COMM_WORLD_LOCAL_SIZE")
    # Open MPI 4: the address of mpirun, "<job>.0;tcp://<address>,...:<port>". Open MPI 5: "prterun-<host>-<number>@<job>".
    uri, job = env.get("OMPI_MCA_orte_hnp_uri", ""), env.get("PMIX_NAMESPACE", "")
    mpirun = re.search(r";tcp6?://(?:\[([^\]]+)\]|([^,:]+))", uri) or re.match(r"prte(?:run)?-(.+)-\d+@", job)
    host = "localhost" if count == on_host else mpirun and mpirun[mpirun.lastindex]
    run = f"Open MPI {uri} {job}" if uri or job else None
    process, local = number(env, "OMPI_COMM_WORLD_RANK"), number(env, "OMPI_COMM_WORLD_LOCAL_RANK")
    return Cluster(_at(host, run), count, process, local, run, "Open MPI")


def _pmi(env: Mapping[str, str]) -> Cluster | None:
    """MPICH, Intel MPI and other relatives of MPICH.

    These variables never have an address. It is known for a step of Slurm, which `mpiexec` starts there for its daemons,
    and for Intel MPI on one host, where the processes have a common name.
    """
    if not {"PMI_RANK", "PMI_SIZE"} <= env.keys():
        return None
    slurm = _slurm(env) if "SLURM_STEP_ID" in env else None
    if slurm and env.get("PMI_JOBID") == f"{env['SLURM_JOB_ID']}.{env['SLURM_STEP_ID']}":
        return slurm  # srun --mpi=pmi2 sets both
    count, process = number(env, "PMI_SIZE"), number(env, "PMI_RANK")
    local, on_host = number(env, "MPI_LOCALRANKID"), number(env, "MPI_LOCALNRANKS")
    if slurm:
        return slurm._replace(num_processes=count, process_id=process, local_process_id=local)
    name = env.get("I_MPI_HYDRA_UUID")
    run = f"Intel MPI {name}" if name and count == on_host else None
    return Cluster(_at("localhost", run), count, process, local, run, "Intel MPI" if name else "MPICH")


def _kubernetes(env: Mapping[str, str]) -> Cluster | None:
    """An indexed job: pods have the names ``<job>-<index>`` in the domain of a headless service."""
    index = number(env, "JOB_COMPLETION_INDEX")
    if index is None or "KUBERNETES_SERVICE_HOST" not in env:
        return None
    name, _, domain = (env.get("HOSTNAME") or socket.gethostname()).partition(".")
    job = re.match(rf"(.+)-{index}(-\w+)?$", name)
    domain = domain or env.get("JAX_KUBERNETES_SUBDOMAIN") or (job and job[1])
    run = f"Kubernetes {domain} {job[1]}" if job else None  # a pod with the network of its node has another name
    # A pod has the devices that it requested, so its process uses all of them.
    return Cluster(
        _at(job and f"{job[1]}-0.{domain}", run), number(env, "JAX_NUM_PROCESSES"), index, None, run, "Kubernetes"
    )


def _mpi4py(env: Mapping[str, str]) -> Cluster | None:
    """Only by name: an import of mpi4py starts MPI."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    name = next((n for n in _SIZES if n in env), None)
    if world.size == 1 and name and number(env, name) != 1:
        raise ValueError(
            f"mpi4py finds 1 process, but {name} is {env[name]}: each of these processes would run alone. The program was not"
            f" started by the launcher of mpi4py's MPI library ({MPI.Get_library_version().splitlines()[0]}); use its"
            " mpiexec, or an mpi4py for the library of the launcher"
        )
    local = world.Split_type(MPI.COMM_TYPE_SHARED)
    host, run = world.bcast((socket.gethostname(), f"mpi4py {uuid.uuid4()}") if world.rank == 0 else None)
    host = "localhost" if local.size == world.size else host
    return Cluster(_at(host, run), world.size, world.rank, local.rank, run, "mpi4py")


METHODS: dict[str, Callable[[Mapping[str, str]], Cluster | None]] = {
    "ompi": _open_mpi,
    "pmi": _pmi,
    "slurm": _slurm,
    "k8s": _kubernetes,
    "mpi4py": _mpi4py,
}


def detect(method: str | None = None, env: Mapping[str, str] = os.environ) -> Cluster:
    """The launcher's description of this run; empty without a launcher, or with the method ``"deactivate"``.

    Args:
      method: a name in `METHODS`. Default: the first one whose variables are set, except ``mpi4py``.
      env: the environment.

    Raises:
      ValueError: the method does not exist, or its variables are not set; the variables of a launcher describe several
        processes, and this process was started without the launcher.
    """
    if method == "deactivate":
        return Cluster()
    if method is None:
        return next(filter(None, (METHODS[m](env) for m in METHODS if m != "mpi4py")), Cluster())
    if method.lower() not in METHODS:
        raise ValueError(f"cluster_detection_method is one of {[*METHODS, 'deactivate']}, got {method!r}")
    found = METHODS[method.lower()](env)
    if found is None:
        raise ValueError(
            f"cluster_detection_method={method!r}: its variables are not in the environment of this process"
        )
    return found
