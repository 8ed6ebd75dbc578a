"""jaxlib's coordination service and its client, and the collectives by which CPUs of several processes meet."""

from __future__ import annotations

from typing import Any

from jaxlib import _jax

from bedrax.xla_backend.door import versions


def check_credentials(credentials: dict[str, Any]) -> None:
    """Raise NotImplementedError if there are credentials, and this jaxlib takes none."""
    missing = versions.missing("mutual TLS among processes")
    if credentials and missing:
        raise NotImplementedError(
            f"jax.distributed.initialize({', '.join(f'{name}=' for name in credentials)}): {missing}"
        )


def serve(
    address: str, count: int, heartbeat: int, registration: int, shutdown: int, recoverable: bool,
    credentials: dict[str, Any],
) -> Any:  # fmt: skip
    """The service at an address, for `count` processes; time-outs in seconds."""
    return _jax.get_distributed_runtime_service(
        address, count, heartbeat_timeout=heartbeat, cluster_register_timeout=registration, shutdown_timeout=shutdown,
        recoverable=recoverable, **credentials,
    )  # fmt: skip


def client(address: str, number: int, init: int, heartbeat: int, shutdown: int, credentials: dict[str, Any]) -> Any:
    """A client, not yet connected. It ends its process, with a message that names who died, when the run is lost."""
    return _jax.get_distributed_runtime_client(
        address, number, init_timeout=init, heartbeat_timeout=heartbeat, shutdown_timeout=shutdown,
        shutdown_on_destruction=False, use_compression=True, **credentials,
    )  # fmt: skip


def preemption_sync_manager() -> Any:
    """What learns that processes are to be stopped, and finds a step at which all can."""
    return _jax.create_preemption_sync_manager()


def cpu_collectives(kind: str, run_client: Any) -> Any:
    """``"gloo"`` or ``"mpi"``.

    Raises:
      ValueError: there are no such collectives in jaxlib.
    """
    if kind == "gloo":
        return _jax.make_gloo_tcp_collectives(distributed_client=run_client)
    if kind == "mpi":
        collectives = _jax.make_mpi_collectives()
        collectives.Init()
        return collectives
    raise ValueError(f"jax_cpu_collectives_implementation is 'gloo' or 'mpi', got {kind!r}")
