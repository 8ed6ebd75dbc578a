"""The first connection of the processes of a run: threads stand for the processes."""

import contextlib
import json
import os
import socket
import threading
import time
import uuid

import pytest

from bedrax.processes import clusters, rendezvous

PORT = 20000 + (8 * os.getpid() + 4) % 12000  # see test_runs.py; the next ones are of this process, too


class Process(threading.Thread):
    """A process that joins a run. `result` is the address, or the error."""

    def __init__(self, number, count=2, port=PORT, timeout=10, run=None, bind=None):
        super().__init__(daemon=True)
        self.arguments = f"localhost:{port}", bind, number, count, timeout, run
        self.start()

    def run(self):
        try:
            self.result = rendezvous.meet(*self.arguments)
        except RuntimeError as error:
            self.result = error


def results(*processes):
    for p in processes:
        p.join(30)
        assert not p.is_alive()
    return [p.result for p in processes]


def connected(port=PORT):
    """A connection to process 0, which may not listen yet."""
    for _ in range(500):
        with contextlib.suppress(OSError):
            return socket.create_connection(("localhost", port), timeout=10)
        time.sleep(0.01)
    raise AssertionError("nothing listens")


def test_all_processes_get_the_address():
    assert results(*(Process(i, 4) for i in range(4))) == [f"localhost:{PORT}"] * 4


def test_the_address_to_listen_at():
    assert results(Process(0, bind=f"127.0.0.1:{PORT}"), Process(1)) == [f"localhost:{PORT}"] * 2
    elsewhere = Process(0, timeout=2, bind=f"[::1]:{PORT + 1}"), Process(1, timeout=2)
    missed, unanswered = results(*elsewhere)
    assert "no connection from process 1" in str(missed) and "did not answer in time" in str(unanswered)


@pytest.mark.parametrize(
    "sent",
    [
        None,
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"1\n",
        b"{}\n",
        b'{"number": "x", "count": 2, "run": null}\n',
        b"\xff\xfe\n",
        b"[" * 4000 + b"\n",
        b"x" * 100_000,
    ],
)
def test_foreign_connections_do_not_end_a_run(sent):
    """A connection without a message ended the run after five seconds. JSON with other names ended process 0."""
    zero = Process(0)
    stranger = connected()
    if sent is not None:
        with contextlib.suppress(OSError):  # it is closed while it sends
            stranger.sendall(sent)
    if sent == b"":
        stranger.close()
    time.sleep(6 if sent is None else 0.2)
    assert results(zero, Process(1)) == [f"localhost:{PORT}"] * 2
    stranger.close()


def test_a_restarted_process_replaces_the_former_one():
    zero = Process(0, 3)
    first = connected()
    first.sendall(json.dumps({"number": 1, "count": 3, "run": None}).encode() + b"\n")
    assert b"welcome" in first.recv(100)
    first.close()
    time.sleep(0.2)
    assert results(zero, Process(1, 3), Process(2, 3)) == [f"localhost:{PORT}"] * 3


def test_two_processes_of_one_number():
    zero, one = Process(0, 3), Process(1, 3)
    found = results(zero, one, Process(1, 3))
    assert all("two processes have process_id=1" in str(error) for error in found)


def test_the_error_names_the_process_that_did_not_connect():
    for error in results(Process(0, 3, timeout=2), Process(1, 3, timeout=2)):
        assert "no connection from process 2 in time" in str(error)


def test_a_port_that_is_in_use():
    with socket.create_server(("", PORT)):
        (error,) = results(Process(0))
    assert f"cannot listen at port {PORT}" in str(error) and "another process may be the coordinator" in str(error)


@pytest.mark.parametrize("silent", [True, False])
def test_a_run_takes_another_port_if_its_first_one_is_in_use(silent):
    run = f"a run {uuid.uuid4()}"
    first, second, *_ = clusters.ports(run)
    with socket.create_server(("", first)) as other:
        if not silent:

            def answer():  # as the coordination service of another run does
                with contextlib.suppress(OSError):
                    while True:
                        connection, _ = other.accept()
                        connection.sendall(b"\x00\x00\x18\x04")
                        connection.close()

            threading.Thread(target=answer, daemon=True).start()
        processes = [Process(i, port=first, timeout=25, run=run) for i in range(2)]
        assert results(*processes) == [f"localhost:{second}"] * 2


def test_runs_with_the_same_ports_do_not_meet(monkeypatch):
    """Without names, processes of two runs would be counted as one."""
    monkeypatch.setattr(clusters, "ports", lambda run: [PORT, PORT + 1, PORT + 2])
    names = ("one", "two", "three")
    runs = [[Process(0, 3, timeout=25, run=name)] for name in names]
    for i in range(3):
        connected(PORT + i).close()  # all listen, before one has ended
    for i in (1, 2):
        for name, run in zip(names, runs, strict=True):
            run.append(Process(i, 3, timeout=25, run=name))
    addresses = [results(*run) for run in runs]
    assert all(len({*found}) == 1 for found in addresses)
    assert {found[0] for found in addresses} == {f"localhost:{PORT + i}" for i in range(3)}
