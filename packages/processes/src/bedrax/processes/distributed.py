"""Runs of several processes: each starts the same program, connects to a coordinator, and has access to all devices.

The coordination service, its client and the collectives between hosts are jaxlib's.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bedrax.core import source
from bedrax.core.signatures import is_position
from bedrax.processes import clusters, flags, peers, rendezvous
from bedrax.xla_backend import clients
from bedrax.xla_backend.door import coordination

_logger = logging.getLogger("jax.distributed")


class State:
    """The state of a run for libraries.

    Attributes:
      client: the client of the coordination service, or None in a run of one process.
      service: the coordination service, in process 0 only.
      preemption_sync_manager: signals that processes must stop, see `multihost.reached_preemption_sync_point`.
      process_id, num_processes: the number of this process, and of all processes.
      coordinator_address: the address of process 0.
      shutdown_timeout: seconds to wait for the others at the end.
      watch: finds the processes that have ended after an error, see `peers`.
    """

    def __init__(self) -> None:
        self.client: Any = None
        self.service: Any = None
        self.preemption_sync_manager: Any = None
        self.process_id: int = 0
        self.num_processes: int = 1
        self.coordinator_address: str | None = None
        self.shutdown_timeout: int = 0
        self.watch: peers.Watch | None = None


global_state: Final = State()
_lock = threading.Lock()


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
    mtls_cert_file: str | None = None,
    mtls_key_file: str | None = None,
    mtls_ca_file: str | None = None,
    mtls_peer_uri_prefix: str | None = None,
    verify_secure_credentials: bool | None = None,
) -> None:
    """Join a run of several processes. Each process calls this before its first computation.

    Afterwards `jax.devices()` are those of all processes, and `jax.local_devices()` those of this one. Missing
    arguments are taken from ``JAX_COORDINATOR_ADDRESS``, ``JAX_NUM_PROCESSES``, ``JAX_PROCESS_ID`` and
    ``JAX_LOCAL_DEVICE_IDS``, else from the environment variables of Open MPI, Intel MPI, MPICH, Slurm or Kubernetes.
    Those of MPICH have no address, and those of Kubernetes no number of processes.

    Args:
      coordinator_address: ``"host:port"`` of process 0, the same for all processes. The port that follows from a
        launcher is different for each run, and if it is in use, process 0 takes another one.
      num_processes: the number of processes.
      process_id: the number of this process: 0 to ``num_processes - 1``, each once.
      local_device_ids: the accelerators of the host that this process uses. Default: all; with Slurm or
        MPI, the one with the process's number on its host, unless ``CUDA_VISIBLE_DEVICES`` (or
        ``ROCR_VISIBLE_DEVICES``) has devices for this process alone.
      cluster_detection_method: ``"ompi"``, ``"pmi"`` (MPICH, Intel MPI), ``"slurm"``, ``"k8s"``, ``"mpi4py"``, or
        ``"deactivate"``. Default: the first of these whose variables are set, except ``"mpi4py"``, which starts MPI.
      initialization_timeout: seconds to wait for all processes.
      heartbeat_timeout_seconds: a process without a heartbeat for this time counts as dead.
      shutdown_timeout_seconds: seconds to wait for the others at the end.
      coordinator_bind_address: the address that process 0 listens on. Default: all interfaces, at the port of
        `coordinator_address`. It needs `coordinator_address`.
      slice_index, partition_index: not supported: the runtime determines which devices are near each other.
      mtls_cert_file, mtls_key_file, mtls_ca_file: files (PEM) with the certificate chain of this process, its private
        key, and the authorities for the certificates of others. The coordination service and its clients authenticate
        each other with these (mutual TLS, jaxlib 0.12). All three or none. Default: the options
        ``jax_mtls_cert_file``, ``jax_mtls_key_file`` and ``jax_mtls_ca_file``. The transport of arrays is not affected.
      mtls_peer_uri_prefix: the beginning of a URI in the certificate of the other side, with a ``/`` at its end.
        Default: the option ``jax_mtls_peer_uri_prefix``. Without it, the certificate must name the host of
        `coordinator_address`.
      verify_secure_credentials: raise an error for a connection without certificates. Default: the option
        ``jax_distributed_verify_secure_credentials``.

    Raises:
      ValueError: a necessary setting is missing, or wrong.
      NotImplementedError: certificates are given, and this jaxlib has no mutual TLS.
      RuntimeError: a second call, or a call after the first computation; a process did not join in time; another
        process has this number.
    """
    for name, value in (("slice_index", slice_index), ("partition_index", partition_index)):
        if value is not None:
            raise NotImplementedError(f"jax.distributed.initialize: {name} is decided by the runtime; leave it out")
    credentials = _credentials(
        verify_secure_credentials,
        mtls_cert_file=mtls_cert_file,
        mtls_key_file=mtls_key_file,
        mtls_ca_file=mtls_ca_file,
        mtls_peer_uri_prefix=mtls_peer_uri_prefix,
    )
    found = _settings(coordinator_address, num_processes, process_id, cluster_detection_method, os.environ)
    if coordinator_bind_address is not None and found.run is not None:
        raise ValueError(
            "coordinator_bind_address has a port: give coordinator_address, too, so that the other processes can connect"
        )
    with _lock:
        if global_state.client is not None:
            raise RuntimeError("jax.distributed.initialize was called before in this process; call it once")
        if clients.is_initialized():
            raise RuntimeError(
                "jax.distributed.initialize must be called before the first computation and the first use of devices: the devices of this"
                " process are in use already"
            )
        devices = clients.visible_accelerators
        _choose_devices(local_device_ids, found, os.environ)
        try:
            _connect(
                found,
                initialization_timeout,
                heartbeat_timeout_seconds,
                shutdown_timeout_seconds,
                coordinator_bind_address,
                credentials,
            )
        except BaseException:
            clients.visible_accelerators = devices
            raise


def _credentials(verify: bool | None, **files: str | None) -> dict[str, Any]:
    """The arguments of jaxlib for mutual TLS, by name; empty without certificates."""
    found = {name: getattr(flags, name).value if value is None else value for name, value in files.items()}
    *needed, prefix = found
    missing = [name for name in needed if found[name] is None]
    verify = flags.verify_secure_credentials.value if verify is None else verify
    if len(missing) == len(needed):
        if verify:
            raise ValueError(
                f"verify_secure_credentials requires certificates, and there are none: give {', '.join(needed)}"
            )
        if found[prefix] is not None:
            raise ValueError(f"{prefix} needs certificates: give {', '.join(needed)}")
        return {}
    if missing:
        raise ValueError(f"mutual TLS needs {', '.join(needed)}; {missing[0]} is missing")
    for name in needed:
        if not os.path.isfile(found[name]):
            raise ValueError(f"{name} is a file, got {found[name]!r}, which does not exist")
    if found[prefix] is not None and not found[prefix].endswith("/"):
        raise ValueError(f"{prefix} ends with '/', got {found[prefix]!r}: without it, it would match other names, too")
    credentials = {name: value for name, value in found.items() if value is not None}
    if verify:
        credentials["verify_secure_credentials"] = True
    coordination.check_credentials(credentials)
    return credentials


def _settings(address, count, number, method, env: Mapping[str, str]) -> clusters.Cluster:
    """The complete settings: the arguments, the JAX_ variables, the launcher's variables."""
    settings = clusters.Cluster(
        address or env.get("JAX_COORDINATOR_ADDRESS"),
        clusters.number(env, "JAX_NUM_PROCESSES") if count is None else count,
        clusters.number(env, "JAX_PROCESS_ID") if number is None else number,
    )
    launcher = clusters.Cluster()
    if method is not None or None in settings[:3]:
        launcher = clusters.detect(method, env)
    found = clusters.Cluster(*(b if a is None else a for a, b in zip(settings, launcher, strict=True)))
    if settings.coordinator_address is not None:
        found = found._replace(run=None)  # its port is this one
    for name, value in zip(found._fields[:3], found, strict=False):
        if value is None:
            raise ValueError(_missing(name, found))
    address, count, number = found[:3]
    if not isinstance(address, str) or not address.rpartition(":")[0] or not address.rpartition(":")[2].isdigit():
        raise ValueError(f"coordinator_address is 'host:port', got {address!r}")
    if count < 1 or not 0 <= number < count:
        raise ValueError(f"process_id is from 0 to num_processes - 1, got process_id={number}, num_processes={count}")
    return found


def _missing(name: str, found: clusters.Cluster) -> str:
    """The error of a setting that is not known."""
    if found.launcher is None:
        return (
            f"jax.distributed.initialize: {name} is not given, and neither JAX_{name.upper()} nor a launcher (Slurm, Open MPI,"
            " Intel MPI, Kubernetes) sets it"
        )
    mpi = found.launcher in ("Open MPI", "Intel MPI", "MPICH") and name == "coordinator_address"
    other = ", or install mpi4py and use cluster_detection_method='mpi4py'" if mpi else ""
    return (
        f"jax.distributed.initialize: {name} is not given, and the variables of {found.launcher} do not have it. Give {name},"
        f" or set JAX_{name.upper()}{other} (this is process {found.process_id} of {found.num_processes or '?'})"
    )


def _choose_devices(local_device_ids, found: clusters.Cluster, env: Mapping[str, str]) -> None:
    """Select the accelerators of the host for this process."""
    if local_device_ids is None and "JAX_LOCAL_DEVICE_IDS" in env:
        try:
            local_device_ids = [int(i) for i in env["JAX_LOCAL_DEVICE_IDS"].split(",")]
        except ValueError:
            raise ValueError(
                f"JAX_LOCAL_DEVICE_IDS is a list of numbers ('0,1'), got {env['JAX_LOCAL_DEVICE_IDS']!r}"
            ) from None
    if is_position(local_device_ids):
        local_device_ids = [local_device_ids]
    if local_device_ids is None and found.local_process_id is not None and not _has_own_devices(found, env):
        local_device_ids = [found.local_process_id]
    if local_device_ids is not None:
        clients.visible_accelerators = frozenset(local_device_ids)


def _has_own_devices(found: clusters.Cluster, env: Mapping[str, str]) -> bool:
    """Whether the launcher has already chosen the accelerators of this process among those of the host.

    ``srun --gpus-per-task=1`` sets these variables to other devices in each process. They are numbered from 0.
    """
    visible, local = env.get("CUDA_VISIBLE_DEVICES") or env.get("ROCR_VISIBLE_DEVICES"), found.local_process_id
    if not visible or local is None:
        return False
    count, on_host = len(visible.split(",")), clusters.number(env, "SLURM_GPUS_ON_NODE")
    return local >= count or (on_host is not None and count < on_host)


def _connect(found, initialization_timeout, heartbeat_timeout, shutdown_timeout, bind_address, credentials) -> None:
    address, count, number = found[:3]
    proxies = [name for name in os.environ if name.lower() in ("http_proxy", "https_proxy", "all_proxy")]
    if flags.check_proxy_envs.value and proxies and not {"no_proxy", "NO_PROXY"} & set(os.environ):
        warnings.warn(
            f"the environment names proxies ({', '.join(sorted(proxies))}): if the processes do not meet, set no_proxy to the"
            " hosts of the run",
            UserWarning,
            stacklevel=source.stacklevel(),
        )
    if flags.distributed_debug.value:
        _logger.warning(
            "process %d of %d connects to %s; devices used: %s",
            number,
            count,
            address,
            "all" if clients.visible_accelerators is None else sorted(clients.visible_accelerators),
        )
    address = rendezvous.meet(address, bind_address, number, count, initialization_timeout, found.run)
    service = None
    if number == 0:
        listen = bind_address or f"[::]:{address.rpartition(':')[2]}"
        service = coordination.serve(
            listen,
            count,
            heartbeat_timeout,
            initialization_timeout,
            shutdown_timeout,
            flags.enable_recoverability.value,
            credentials,
        )
    client = coordination.client(
        address, number, initialization_timeout, heartbeat_timeout, shutdown_timeout, credentials
    )
    client.connect()
    global_state.service, global_state.client = service, client
    global_state.process_id, global_state.num_processes = number, count
    global_state.coordinator_address, global_state.shutdown_timeout = address, shutdown_timeout
    clients.run = clients.Run(client, number, count)
    global_state.watch = peers.start(client, number, count, address, heartbeat_timeout / 4)
    if flags.enable_preemption_service.value:
        manager = coordination.preemption_sync_manager()
        manager.initialize(client)
        global_state.preemption_sync_manager = manager


def is_initialized() -> bool:
    """Whether this process belongs to a run of several processes.

    Examples:

      >>> jax.distributed.is_initialized()
      False
    """
    return global_state.client is not None


def shutdown() -> None:
    """Leave the run: wait until the other processes leave it, too, then disconnect. Does nothing in a run of one process.

    A process does this at its end, unless an exception ends it: then the errors of the others name it immediately. With
    the option ``jax_enable_recoverability`` there is no wait.

    Raises:
      RuntimeError: the others did not leave within ``shutdown_timeout_seconds`` of `initialize`, or one has ended.

    Examples:

      >>> jax.distributed.shutdown()
    """
    _leave(failed=False)


@atexit.register
def _leave_at_exit() -> None:
    error = getattr(sys, "last_value", None)  # the exception that ends the interpreter
    if global_state.watch is not None:
        peers.report(global_state.watch, error)
    _leave(failed=error is not None)


def _leave(failed: bool) -> None:
    with _lock:
        state = global_state
        manager, client, service, watch = state.preemption_sync_manager, state.client, state.service, state.watch
        if client is None:
            return
        problem = ""
        if not failed and not flags.enable_recoverability.value:
            # The service is in process 0: if that ends first, the others cannot reach each other.
            problem = peers.missing(watch) if watch is not None else ""
            if not problem:
                problem = _wait_for_others(client, state.shutdown_timeout)
        state.__init__()
        if watch is not None:
            peers.stop(watch, failed)
        if manager is not None:
            manager.shutdown()
        clients.run = None
        client.shutdown()
        if service is not None:
            service.shutdown()
    if problem:
        raise RuntimeError(f"this process left the run without the others: {problem}")


def _wait_for_others(client: Any, timeout: int) -> str:
    """Wait until all processes leave the run. Returns what is wrong, or an empty text."""
    try:
        client.wait_at_barrier("bedrax/leave", timeout * 1000)
    except Exception as error:
        return (
            f"they did not leave within {timeout} seconds (shutdown_timeout_seconds of initialize), or ended. {error}"
        )
    return ""
