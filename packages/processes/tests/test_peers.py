"""Ended processes, in one process: a dictionary replaces the store of the coordination service."""

import socket
import sys
import threading

import pytest

from bedrax.processes import peers
from bedrax.xla_backend import JaxRuntimeError, host


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
def three(monkeypatch):
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    store = Store()
    watches = [peers.start(store, i, 3, "localhost:4321") for i in range(3)]
    yield watches
    for watch in watches:
        peers.stop(watch)


def test_who_refuses_is_gone(three):
    zero, one, two = three
    assert peers.gone(zero, 0) == []
    one.listener.close()
    ((number, where),) = peers.gone(two)
    assert number == 1 and where.split()[1].isdigit()
    zero.client.dead = True
    assert peers.gone(two) == [(0, "localhost 4321")]


def test_errors_are_named_with_names(three, capsys):
    two = three[2]
    three[0].listener.close()
    three[1].listener.close()
    named = host.explain_failure(JaxRuntimeError("Connection closed by peer"))
    assert isinstance(named, JaxRuntimeError)
    assert str(named).startswith("Connection closed by peer\nprocess 0 (at ") and ", process 1 (at " in str(named)
    assert "of the 3 of this run are gone" in str(named)
    for raised in (JaxRuntimeError("Connection reset by peer"), ValueError("no word of it")):
        sys.excepthook(type(raised), raised, None)
    assert capsys.readouterr().err.count("of this run are gone") == 1
    assert peers.gone(two)


def test_threads_are_named_too(three, capsys):
    three[1].listener.close()
    error = JaxRuntimeError("Connection reset by peer")
    threading.excepthook(threading.ExceptHookArgs((type(error), error, None, None)))
    assert "process 1 (at " in error.__notes__[0] and "is gone" in capsys.readouterr().err


def test_a_run_that_has_ended_asks_nobody(three):
    two = three[2]
    for watch in three:
        peers.stop(watch)
    assert host.explain_failure is None and peers.gone(two) == []


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


def test_a_process_that_fails_is_missed(three):
    peers.stop(three[1], failed=True)
    peers.stop(three[2])
    assert [number for number, _ in peers.gone(three[0])] == [1]


def test_who_waits_for_nothing_is_named(capsys, monkeypatch):
    store = Store()
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
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
