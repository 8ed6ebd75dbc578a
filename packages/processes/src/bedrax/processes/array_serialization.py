"""The interface of asynchronous checkpoint managers, which libraries derive theirs from."""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable, Sequence
from typing import Any


class BarrierTimeoutError(Exception):
    """Processes did not meet in time."""


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """Saves and restores arrays that may be spread over processes, in the background."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise what went wrong in the background."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait for the background work."""

    @abc.abstractmethod
    def serialize(
        self, arrays: Sequence[Any], tensorstore_specs: Sequence[dict], *, on_commit_callback: Callable
    ) -> None:
        """Save arrays; call `on_commit_callback` when they are written."""

    @abc.abstractmethod
    def deserialize(
        self, shardings: Sequence[Any], tensorstore_specs: Sequence[dict], global_shapes=None, dtypes=None
    ) -> list:
        """Restore arrays."""


class AsyncManager:
    """Runs one background thread at a time and passes its error on."""

    def __init__(self, timeout_secs: int = 300):
        self._timeout_secs = timeout_secs
        self._thread: threading.Thread | None = None
        self._exception: Exception | None = None

    def _start(self, work: Callable[[], None]) -> None:
        self.wait_until_finished()

        def run():
            try:
                work()
            except Exception as e:  # it is raised in the thread that asks
                self._exception = e

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def check_for_errors(self) -> None:
        """Raise what went wrong in the background, once."""
        error, self._exception = self._exception, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Wait for the background work, and raise what went wrong in it."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()
