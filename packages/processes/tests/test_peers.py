"""Ended processes, in one process: a dictionary replaces the store of the coordination service."""

import socket
import sys
import threading

import numpy as np
import pytest

from bedrax import lax
from bedrax.processes import peers
from bedrax.xla_backend import JaxRuntimeError, device_put, failures, host, placement
from bedrax.xla_backend.door import runtime


class Store(dict):
    """The store of the coordination service, and its errors after the end of process 0."""

    dead = False

    def key_value_set(self, key, value, allow_overwrite=False):
        assert allow_overwrite or key not in self
        self[key] = value

    def key_value_delete(self, key):
        del self[key]

    def key_value_dir_get(self, folder):
        if self.dead:
            raise RuntimeError("UNAVAILABLE")
        return [(k, v) for k, v in self.items() if k.startswith(folder)]


@pytest.fixture
def three():
    store = Store()
    watches = [peers.start(store, i, 3, "localhost:4321") for i in range(3)]
    yield watches
    for watch in watches:
        peers.stop(watch)


def test_a_process_that_refuses_connections_has_ended(three):
    zero, one, two = three
    assert peers.gone(zero, 0) == []
    one.listener.close()
    ((number, where),) = peers.gone(two)
    assert number == 1 and where.split()[1].isdigit()
    zero.client.dead = True
    assert peers.gone(two) == [(0, "localhost 4321")]


def test_errors_of_the_runtime_get_a_note(three):
    three[0].listener.close()
    three[1].listener.close()
    error = JaxRuntimeError("Connection closed by peer")
    failures.add_notes(error)
    failures.add_notes(error)  # it has the note already
    (note,) = error.__notes__
    assert note.startswith("process 0 (at ") and ", process 1 (at " in note
    assert "of the 3 of this run are gone" in note


def lost(*args):
    raise JaxRuntimeError("Connection reset by peer")


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x.block_until_ready(),
        placement.block_until_ready,
        lambda x: placement.block_until_ready([x, x]),
        lambda x: x.tolist(),
    ],
)
def test_an_error_has_its_note_where_it_is_raised(three, monkeypatch, use):
    """Also in a thread, and where the program catches the error."""
    three[1].listener.close()
    monkeypatch.setattr(host, "wait_for", lost)
    monkeypatch.setattr(host, "copy_to_host", lost)
    monkeypatch.setattr(runtime, "batched_block_until_ready", lost)
    x = lax.neg(device_put(np.arange(3.0, dtype=np.float32)))
    caught = []

    def run():
        try:
            use(x)
        except JaxRuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert "process 1 (at " in caught[0].__notes__[0] and "is gone" in caught[0].__notes__[0]


def test_an_error_that_ends_the_process_is_reported_at_its_end(three, capsys):
    three[1].listener.close()
    error = JaxRuntimeError("Connection reset by peer")
    for ended_by in (None, ValueError("no error of the runtime"), error):
        peers.report(three[2], ended_by)
    assert capsys.readouterr().err.count("of this run is gone") == 1
    failures.add_notes(error)
    peers.report(three[2], error)  # its traceback had the note
    assert not capsys.readouterr().err


def test_the_hooks_of_python_stay():
    hooks = sys.excepthook, threading.excepthook
    watch = peers.start(Store(), 0, 1, "localhost:4321")
    assert (sys.excepthook, threading.excepthook) == hooks
    peers.stop(watch)


def test_a_run_that_has_ended_explains_no_error(three):
    two = three[2]
    for watch in three:
        peers.stop(watch)
    assert not failures.explanations and peers.gone(two) == []


def test_checks_are_answered_in_long_runs():
    """Nothing accepted the connections of the checks. After some 128 of them, each took the two seconds of its time-out."""
    watch = peers.start(Store(), 0, 1, "localhost:4321", 0.01)
    try:
        address = watch.listener.getsockname()[:2]
        for _ in range(500):
            socket.create_connection(address, timeout=5).close()
        assert not peers._refuses(f"{address[0]} {address[1]}")
    finally:
        peers.stop(watch)


def test_a_process_that_failed_is_reported_as_ended(three):
    peers.stop(three[1], failed=True)
    peers.stop(three[2])
    assert [number for number, _ in peers.gone(three[0])] == [1]


def test_ended_processes_are_printed_without_a_collective(capsys):
    store = Store()
    quiet = [peers.start(store, i, 4, "localhost:4321") for i in range(4)]
    peers.stop(quiet[3])  # a process that leaves is not missing
    quiet[1].listener.close()
    quiet[2].listener.close()
    for period, watch in enumerate((quiet[0], quiet[0]._replace(number=3))):  # the next of 0 are gone, 3 reads it
        peers._look_out(watch, period / 100)
        output = capsys.readouterr().err
        assert "process 1 (at " in output and "process 2 (at " in output and "of the 4 of this run are gone" in output
    for watch in quiet:
        peers.stop(watch)
    peers._look_out(quiet[0], 0)
    assert not capsys.readouterr().err
