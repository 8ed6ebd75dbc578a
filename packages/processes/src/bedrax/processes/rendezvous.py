"""The first connection of the processes of a run, before the coordination service starts at the same address.

The service ends a process that is too late, or whose number is taken. Here the errors of each process name the cause.

Each process sends process 0 a line with its number, the number of processes and the name of the run. Process 0 answers
with a line. When all processes have connected, it sends a second line, the result. It closes connections of another run, of a
scan of ports, or of a proxy, and continues.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import selectors
import socket
import time
from typing import Any

from bedrax.processes import clusters

_LINE = 4096  # the longest line
_WELCOME = {"welcome": "bedrax"}


def meet(
    address: str, bind_address: str | None, number: int, count: int, timeout: float, run: str | None = None
) -> str:
    """Return when all processes of a run have connected: the address of process 0.

    Args:
      address: the address of process 0. With `run`, the port is the first one of the run in use.
      bind_address: the address at which process 0 listens. Default: all interfaces.
      run: the name of the run.

    Raises:
      RuntimeError: in all connected processes: some process is missing at the end of the time, or two have one number,
        or their numbers of processes differ; or no process answers at the address.
    """
    host, _, port = address.rpartition(":")
    ports = [int(port)] if run is None else clusters.ports(run)
    deadline = time.monotonic() + timeout
    words = {"number": number, "count": count, "run": run}
    if number != 0:
        problem, found = _report(host.strip("[]"), ports, words, deadline)
    elif bind_address is None:
        problem, found = _gather("", ports, words, deadline)
    else:  # another port, if the network maps that of the address to it
        listen, _, own = bind_address.rpartition(":")
        problem, found = _gather(listen.strip("[]"), [int(own)], words, deadline)[0], ports[0]
    if problem:
        raise RuntimeError(f"process {number} of {count} did not join the run at {address}: {problem}")
    return f"{host}:{found}"


def _listen(host: str, ports: list[int], count: int) -> socket.socket:
    """A socket at the first port that is free."""
    dual = socket.has_dualstack_ipv6() and host in ("", "::")
    family = socket.AF_INET6 if dual or ":" in host else socket.AF_INET
    for port in ports[:-1]:
        with contextlib.suppress(OSError):
            return socket.create_server((host, port), family=family, dualstack_ipv6=dual, backlog=count)
    return socket.create_server((host, ports[-1]), family=family, dualstack_ipv6=dual, backlog=count)


def _gather(host: str, ports: list[int], mine: dict[str, Any], deadline: float) -> tuple[str, int]:
    """Wait for the others and send them the result: the problem, or an empty text. Returns it, and the port."""
    try:
        server = _listen(host, ports, mine["count"])
    except OSError as error:
        where = f"port {ports[0]}" if len(ports) == 1 else f"one of the ports {', '.join(map(str, ports))}"
        return f"process 0 cannot listen at {where} ({error}); another process may be the coordinator there", 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(server)
        problem, joined = _joined(server, mine, deadline, stack)
        for other in joined:
            with contextlib.suppress(OSError):
                other.settimeout(5)
                other.sendall(_line({"problem": problem}))
        return problem, server.getsockname()[1]


def _joined(
    server: socket.socket, mine: dict[str, Any], deadline: float, stack: contextlib.ExitStack
) -> tuple[str, list[socket.socket]]:
    """The problem, or an empty text, and the connections of this run. `stack` closes all connections."""
    present: dict[int, socket.socket] = {}  # by number
    parts: dict[socket.socket, bytes] = {}  # of a line that is not complete
    selector = stack.enter_context(selectors.DefaultSelector())
    server.setblocking(False)
    selector.register(server, selectors.EVENT_READ)

    def drop(other):
        selector.unregister(other)
        other.close()
        parts.pop(other, None)
        for number in [n for n, s in present.items() if s is other]:
            del present[number]

    while len(present) < mine["count"] - 1:
        left = deadline - time.monotonic()
        if left <= 0:
            missing = sorted(set(range(1, mine["count"])) - present.keys())
            problem = f"no connection from process {', '.join(map(str, missing))} in time (initialization_timeout)"
            return problem, [*present.values()]
        lines = []
        for key, _ in selector.select(left):
            connection: Any = key.fileobj
            if connection is server:
                with contextlib.suppress(OSError):  # it may be closed again
                    other = stack.enter_context(server.accept()[0])
                    other.setblocking(False)
                    selector.register(other, selectors.EVENT_READ)
                    parts[other] = b""
                continue
            try:
                data = connection.recv(_LINE)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if not data or connection not in parts or len(parts[connection]) > _LINE:
                drop(connection)  # it ended before the run began, or is not of a run
                continue
            parts[connection] += data
            if b"\n" in data:
                lines.append((connection, parts.pop(connection)))
        for other, line in lines:  # after the ends of processes that are started again
            words = _read(line)
            if words is None or words["run"] != mine["run"]:
                drop(other)
                continue
            number, count = words["number"], words["count"]
            if count != mine["count"]:
                return f"process {number} has num_processes={count}, process 0 has {mine['count']}", [
                    *present.values(),
                    other,
                ]
            if number in present or number == 0:
                return f"two processes have process_id={number}; each number is for one process", [
                    *present.values(),
                    other,
                ]
            try:
                other.sendall(_line(_WELCOME))
            except OSError:
                drop(other)
            else:
                present[number] = other
    return "", [*present.values()]


def _report(host: str, ports: list[int], mine: dict[str, Any], deadline: float) -> tuple[str, int]:
    """Connect to process 0. Returns its result and its port."""
    last: Exception | None = None
    for port in itertools.cycle(ports):
        left = deadline - time.monotonic()
        if left <= 0:
            break
        try:
            with socket.create_connection((host, port), timeout=min(5.0, left)) as s:
                s.settimeout(min(5.0, left))
                s.sendall(_line(mine))
                with s.makefile("rb") as answers:
                    answer = json.loads(answers.readline(_LINE))
                    if answer == _WELCOME:
                        s.settimeout(max(0.1, deadline + 5 - time.monotonic()))  # process 0 has the same deadline
                        answer = json.loads(answers.readline(_LINE))
                    return answer["problem"], port
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            last = error  # process 0 may not have started yet
        if port == ports[-1]:
            time.sleep(0.1)
    return f"process 0 did not answer in time ({last}): is coordinator_address right, and was process 0 started?", 0


def _line(words: dict[str, Any]) -> bytes:
    return json.dumps(words).encode() + b"\n"


def _read(line: bytes) -> dict[str, Any] | None:
    """The message of a process of a run, or None for any other line."""
    try:
        words = json.loads(line)
        known = isinstance(words["number"], int) and isinstance(words["count"], int) and words.keys() >= {"run"}
        return words if known else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):  # the last: thousands of brackets
        return None
