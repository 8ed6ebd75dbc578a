"""jaxlib's coordination service and its client, and the collectives between CPUs of several processes."""

from __future__ import annotations

from typing import Any

from jaxlib import _jax

from bedrax.xla_backend.door import versions


def check_credentials(credentials: dict[str, Any]) -> None:
    """Raise NotImplementedError if there are credentials, and this jaxlib accepts none."""
    missing = versions.missing("mutual TLS among processes")
    if credentials and missing:
        raise NotImplementedError(
            f"jax.distributed.initialize({', '.join(f'{name}=' for name in credentials)}): {missing}"
        )


def serve(
    address: str,
    count: int,
    heartbeat: int,
    registration: int,
    shutdown: int,
    recoverable: bool,
    credentials: dict[str, Any],
) -> Any:
    """The service at an address, for `count` processes. Time-outs are in seconds."""
    return _jax.get_distributed_runtime_service(
        address,
        count,
        heartbeat_timeout=heartbeat,
        cluster_register_timeout=registration,
        shutdown_timeout=shutdown,
        recoverable=recoverable,
        **credentials,
    )


def client(address: str, number: int, init: int, heartbeat: int, shutdown: int, credentials: dict[str, Any]) -> Any:
    """A client, not yet connected. If the run is lost, it ends its process; the message names the lost one."""
    return _jax.get_distributed_runtime_client(
        address,
        number,
        init_timeout=init,
        heartbeat_timeout=heartbeat,
        shutdown_timeout=shutdown,
        shutdown_on_destruction=False,
        use_compression=True,
        **credentials,
    )


def preemption_sync_manager() -> Any:
    """The manager that receives notices of preemption, and finds a step at which all processes can stop."""
    return _jax.create_preemption_sync_manager()


def cpu_collectives(kind: str, run_client: Any) -> Any:
    """Collectives of the kind ``"gloo"`` or ``"mpi"``.

    Raises:
      ValueError: jaxlib has no collectives of this kind.
    """
    if kind == "gloo":
        return _jax.make_gloo_tcp_collectives(distributed_client=run_client)
    if kind == "mpi":
        collectives = _jax.make_mpi_collectives()
        collectives.Init()
        return collectives
    raise ValueError(f"jax_cpu_collectives_implementation is 'gloo' or 'mpi', got {kind!r}")
