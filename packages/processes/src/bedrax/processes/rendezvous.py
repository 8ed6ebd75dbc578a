"""The first connection of the processes of a run, before the coordination service starts at the same address.

The service ends a process that is too late, or whose number is taken. Here the errors of each process name the cause.
"""

from __future__ import annotations

import json
import socket
import time


def meet(address: str, bind_address: str | None, number: int, count: int, timeout: float) -> None:
    """Return when all processes of a run have connected.

    Raises:
      RuntimeError: in all connected processes: some process is missing at the end of the time, or two have one number,
      or their numbers of processes differ; or no process answers at the address.
    """
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + timeout
    if number == 0:
        listen = (bind_address or f":{port}").rpartition(":")
        problem = _gather(listen[0].strip("[]"), int(listen[2]), count, deadline)
    else:
        problem = _report(host.strip("[]"), int(port), {"number": number, "count": count}, deadline)
    if problem:
        raise RuntimeError(f"process {number} of {count} did not join the run at {address}: {problem}")


def _gather(host: str, port: int, count: int, deadline: float) -> str:
    """Wait for the others and send them the result: the problem, or an empty text."""
    present: dict[int, socket.socket] = {}
    strangers: list[socket.socket] = []
    problem = ""
    dual = socket.has_dualstack_ipv6() and host in ("", "::")
    try:
        family = socket.AF_INET6 if dual or ":" in host else socket.AF_INET
        server = socket.create_server((host, port), family=family, dualstack_ipv6=dual, backlog=count)
    except OSError as error:
        return f"process 0 cannot listen at port {port} ({error}); another process may be the coordinator there"
    with server:
        while len(present) < count - 1 and not problem:
            server.settimeout(max(0.0, deadline - time.monotonic()) or 1e-3)
            try:
                other, _ = server.accept()
                other.settimeout(5)
                words = json.loads(_line(other))
            except TimeoutError:
                missing = sorted(set(range(1, count)) - present.keys())
                problem = f"no connection from process {', '.join(map(str, missing))} in time (initialization_timeout)"
                break
            except (OSError, ValueError):
                continue  # no process of this run
            strangers.append(other)
            if words["count"] != count:
                problem = f"process {words['number']} has num_processes={words['count']}, process 0 has {count}"
            elif words["number"] in present or words["number"] == 0:
                problem = f"two processes have process_id={words['number']}; each number is for one process"
            else:
                present[words["number"]] = other
        for other in strangers:
            try:
                other.sendall(json.dumps({"problem": problem}).encode() + b"\n")
            except OSError:
                pass
            other.close()
    return problem


def _report(host: str, port: int, words: dict, deadline: float) -> str:
    """Connect to process 0 and return its result."""
    last: Exception | None = None
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((host, port), timeout=max(0.1, deadline - time.monotonic())) as s:
                s.sendall(json.dumps(words).encode() + b"\n")
                answer = _line(s)
                if answer:
                    return json.loads(answer)["problem"]
        except (OSError, ValueError) as error:  # process 0 may not have started yet
            last = error
        time.sleep(0.1)
    return f"process 0 did not answer in time ({last}): is coordinator_address right, and was process 0 started?"


def _line(s: socket.socket) -> str:
    with s.makefile() as f:
        return f.readline()
