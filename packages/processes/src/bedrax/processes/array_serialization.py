"""Saving of arrays in the background: the interface of checkpoint managers, and one with TensorStore."""

from __future__ import annotations

import abc
import asyncio
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from bedrax.processes import distributed, multihost, tensorstore_io


class BarrierTimeoutError(Exception):
    """A process did not reach a barrier in time.

    Examples:

      >>> from jax.experimental.array_serialization import serialization
      >>> x = jnp.arange(4.)

      >>> try:
      ...     raise serialization.BarrierTimeoutError("process 3 is missing")
      ... except Exception as error:
      ...     print(error)
      ...
      process 3 is missing
    """


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """Saves and restores arrays, which may be distributed over processes, in the background.

    Examples:

      >>> from jax.experimental.array_serialization import serialization
      >>> x = jnp.arange(4.)

      >>> issubclass(serialization.GlobalAsyncCheckpointManager, serialization.GlobalAsyncCheckpointManagerBase)
      True
      >>> sorted(serialization.GlobalAsyncCheckpointManagerBase.__abstractmethods__)
      ['check_for_errors', 'deserialize', 'serialize', 'wait_until_finished']
    """

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise the error of the background work, if there is one."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait for the background work."""

    @abc.abstractmethod
    def serialize(
        self,
        arrays: Sequence[Any],
        tensorstore_specs: Sequence[dict[Any, Any]],
        *,
        on_commit_callback: Callable[..., Any],
    ) -> None:
        """Save arrays. Calls `on_commit_callback` after they are written."""

    @abc.abstractmethod
    def deserialize(
        self,
        shardings: Sequence[Any],
        tensorstore_specs: Sequence[dict[Any, Any]],
        global_shapes: Any = None,
        dtypes: Any = None,
    ) -> list[Any]:
        """Restore arrays."""


class AsyncManager:
    """Runs one background thread at a time, and raises its error in the caller's thread.

    Examples:

      >>> from jax.experimental.array_serialization import serialization
      >>> x = jnp.arange(4.)

      >>> manager = serialization.AsyncManager(timeout_secs=60)
      >>> manager.check_for_errors(), manager.wait_until_finished()  # no thread runs, none has failed
      (None, None)
    """

    def __init__(self, timeout_secs: int = 300) -> None:
        self._timeout_secs = timeout_secs
        self._thread: threading.Thread | None = None
        self._exception: Exception | None = None

    def _start(self, work: Callable[[], None]) -> None:
        self.wait_until_finished()

        def run():
            try:
                work()
            except Exception as e:  # raised later in the caller's thread
                self._exception = e

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def check_for_errors(self) -> None:
        """Raise the error of the background work, once."""
        error, self._exception = self._exception, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Wait for the background work, and raise its error."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Saves arrays with TensorStore: copies them first, and writes while the program continues.

    Examples:

      >>> import tempfile
      >>> from jax.experimental.array_serialization import serialization
      >>> x = jnp.arange(4.)

      >>> manager = serialization.GlobalAsyncCheckpointManager()
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     manager.serialize_with_paths([x], [folder + "/x"], on_commit_callback=lambda: print("written"))
      ...     manager.wait_until_finished()
      ...     print(manager.deserialize_with_paths([x.sharding], [folder + "/x"]))
      ...
      written
      [Array([0., 1., 2., 3.], dtype=float32)]
    """

    _managers: ClassVar = itertools.count()

    def __init__(self, timeout_secs: int = 300) -> None:
        super().__init__(timeout_secs)
        # All processes make their managers in the same order. The writes of two managers do not wait for each other.
        self._number = next(self._managers)
        self._saves = itertools.count()

    def serialize(
        self,
        arrays: Sequence[Any],
        tensorstore_specs: Sequence[dict[Any, Any]],
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """Save arrays: return after the copies, and write in the background.

        Args:
          arrays: each may be distributed over processes.
          tensorstore_specs: the specification of each.
          on_commit_callback: called by process 0 after all processes have written.
          transaction: a transaction of TensorStore.
        """
        self.wait_until_finished()
        commits: list[Any] = [[] for _ in arrays]

        async def copy_all():
            writes = zip(arrays, tensorstore_specs, commits, strict=True)
            await asyncio.gather(
                *[tensorstore_io.async_serialize(x, s, c, transaction=transaction) for x, s, c in writes]
            )

        asyncio.run(copy_all())
        multihost.sync_global_devices("arrays are copied")
        name = f"bedrax/save/{self._number}/{next(self._saves)}"
        state, callback = distributed.global_state, on_commit_callback

        def commit():
            for future in (f for fs in commits for f in fs):
                future.result()
            if state.client is not None:
                try:
                    state.client.wait_at_barrier(name, self._timeout_secs * 1000)
                except Exception as error:
                    raise BarrierTimeoutError(
                        f"not all processes wrote their parts within {self._timeout_secs} seconds: {error}"
                    ) from error
            if callback is not None and state.process_id == 0:
                callback()

        self._start(commit)

    def serialize_with_paths(
        self,
        arrays: Sequence[Any],
        paths: Sequence[str],
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """`serialize` with paths."""
        specs = list(map(tensorstore_io.get_tensorstore_spec, paths))
        self.serialize(arrays, specs, on_commit_callback=on_commit_callback, transaction=transaction)

    def deserialize(
        self,
        shardings: Sequence[Any],
        tensorstore_specs: Sequence[dict[Any, Any]],
        global_shapes: Any = None,
        dtypes: Any = None,
        concurrent_gb: int = 32,
    ) -> list[Any]:
        """Restore arrays, after the end of a current write; see `tensorstore_io.run_deserialization`."""
        self.wait_until_finished()
        return tensorstore_io.run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb)

    def deserialize_with_paths(
        self,
        shardings: Sequence[Any],
        paths: Sequence[str],
        global_shapes: Any = None,
        dtypes: Any = None,
        concurrent_gb: int = 32,
    ) -> list[Any]:
        """`deserialize` with paths."""
        specs = list(map(tensorstore_io.get_tensorstore_spec, paths))
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)
