"""The names of ended processes of a run, for the error of a failed collective.

The error of a collective reports a lost connection without the process. So each process holds a listening socket, which
exists as long as the process, and publishes its address. A process whose socket rejects a connection has ended. An error
of the runtime gets a note with the names of these processes where it is raised (`xla_backend.failures`). The call of a
compiled program may raise in C++. If that error ends the process, the names are printed at its end.

A process that waits in no collective gets no error: the coordination service ends it after heartbeat_timeout_seconds,
with a message that has numbers only. So a thread checks the next process a few times in this span. It publishes the name of
a missing process, and prints it on stderr.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from typing import Any, NamedTuple

from bedrax.xla_backend import JaxRuntimeError, failures

_KEY = "bedrax/peers/"
_MISSED = "bedrax/missed/"


class Watch(NamedTuple):
    """The data to look for ended processes."""

    client: Any
    listener: socket.socket
    number: int
    count: int
    coordinator: str
    ended: threading.Event

    def explain(self, error: JaxRuntimeError) -> str:
        """The names of the ended processes, as a note for an error."""
        found = gone(self)
        return _text(self, found) if found else ""


def start(client: Any, number: int, count: int, coordinator: str, period: float = 25.0) -> Watch:
    """Publish the address of this process. From now on errors name ended processes, until `stop`.

    Args:
      period: seconds between two checks of the next process.
    """
    name, _, port = coordinator.rpartition(":")
    family, kind, protocol, _, address = socket.getaddrinfo(name.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:  # nothing is sent: it finds the interface for this address
        probe.connect(address)
        own = probe.getsockname()[0]
    listener = socket.create_server((own, 0), family=family)
    listener.setblocking(False)
    client.key_value_set(f"{_KEY}{number}", f"{own} {listener.getsockname()[1]}")
    watch = Watch(client, listener, number, count, coordinator, threading.Event())
    failures.explanations.append(watch.explain)
    threading.Thread(target=_look_out, args=(watch, period), name="bedrax peers", daemon=True).start()
    return watch


def stop(watch: Watch, failed: bool = False) -> None:
    """Stop watching. Later errors get no names from this watch.

    Args:
      failed: an exception ends this process, so the others miss it.
    """
    with contextlib.suppress(ValueError):  # it is stopped already
        failures.explanations.remove(watch.explain)
    watch.ended.set()
    with contextlib.suppress(Exception):  # the coordination service may be gone
        if not failed:
            watch.client.key_value_delete(f"{_KEY}{watch.number}")  # a process that leaves is not missing
    watch.listener.close()


def _others(watch: Watch) -> dict[int, str]:
    """The addresses of the others that have not left, with those after this process first."""
    known = {int(k.rpartition("/")[2]): v for k, v in watch.client.key_value_dir_get(_KEY)}
    order = sorted(known, key=lambda n: (n - watch.number) % watch.count)
    return {n: known[n] for n in order if n != watch.number}


def missing(watch: Watch) -> str:
    """The names of ended processes; empty if none is known.

    It checks the next process, and publishes the name if that has ended. So each name is known to all after some time, and
    the cost does not grow with the number of processes.
    """
    try:
        for n, address in _others(watch).items():
            if not _refuses(address):
                break
            watch.client.key_value_set(f"{_MISSED}{n}", address, allow_overwrite=True)
        missed = {int(k.rpartition("/")[2]): v for k, v in watch.client.key_value_dir_get(_MISSED)}
    except Exception:  # the coordination service is in process 0
        address = " ".join(watch.coordinator.rsplit(":", 1))
        missed = {0: address} if _refuses(address) else {}
    return _text(watch, sorted(missed.items())) if missed else ""


def _look_out(watch: Watch, period: float) -> None:
    """Print once which process is missing."""
    while not watch.ended.wait(period):
        _close_checks(watch.listener)
        names = missing(watch)
        if names and not watch.ended.is_set():
            print(names, file=sys.stderr, flush=True)
            return


def _close_checks(listener: socket.socket) -> None:
    """Close the connections of the checks of other processes: the system keeps some 128, then it stops answering."""
    with contextlib.suppress(OSError):  # there are no more
        while True:
            listener.accept()[0].close()


def gone(watch: Watch, patience: float = 1.0) -> list[tuple[int, str]]:
    """Number and address (``"host port"``) of ended processes; checks for up to `patience` seconds until there is
    one."""
    deadline = time.monotonic() + patience
    while watch.listener.fileno() >= 0:
        try:
            others = _others(watch)
        except Exception:  # the coordination service is in process 0
            return [(0, " ".join(watch.coordinator.rsplit(":", 1)))]
        found = [(n, v) for n, v in sorted(others.items()) if _refuses(v)]
        if found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)
    return []


def _refuses(address: str) -> bool:
    name, port = address.split()
    try:
        socket.create_connection((name.strip("[]"), int(port)), timeout=2).close()
    except ConnectionError:
        return True
    except OSError:  # a missing answer is not a proof
        return False
    return False


def _text(watch: Watch, found: list[tuple[int, str]]) -> str:
    each = ", ".join(f"process {n} (at {':'.join(where.split())})" for n, where in found)
    return (
        f"{each} of the {watch.count} of this run {'is' if len(found) == 1 else 'are'} gone. Start all processes again, from"
        " the last checkpoint"
    )


def report(watch: Watch, error: BaseException | None) -> None:
    """Print the names of ended processes for an error of the runtime that ended this process without a note."""
    if isinstance(error, JaxRuntimeError) and not getattr(error, "__notes__", ()) and (names := watch.explain(error)):
        print(names, file=sys.stderr, flush=True)
