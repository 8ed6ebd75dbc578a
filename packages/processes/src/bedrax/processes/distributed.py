"""The state of a multi-process run. There is one process: `initialize` raises NotImplementedError."""

from __future__ import annotations

from typing import Any


class State:
    """What libraries ask about the processes of a run."""

    client: Any = None
    service: Any = None
    preemption_sync_manager: Any = None
    process_id: int = 0
    num_processes: int = 1
    coordinator_address: str | None = None


global_state = State()


def initialize(*args, **kwargs) -> None:
    """Not supported yet: raises NotImplementedError."""
    raise NotImplementedError("runs of several processes are not supported yet: jax.distributed.initialize")


def is_initialized() -> bool:
    """Whether this is one process of several."""
    return global_state.client is not None


def shutdown() -> None:
    """Leave a multi-process run; nothing to do in one process."""
