"""The first meeting of the processes of a run, before the coordination service starts at the same address.

The service ends a process that comes too late, or whose number is taken. Here each learns what is wrong, by name.
"""

from __future__ import annotations

import json
import socket
import time


def meet(address: str, bind_address: str | None, number: int, count: int, timeout: float) -> None:
    """Return when all processes of a run have come.

    Raises:
      RuntimeError: in all that have come: some did not in time, or two have one number, or they disagree on how many
        they are; or nobody answers at the address.
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
    """Wait for the others and tell them how it went: the problem, or nothing."""
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
                said = json.loads(_line(other))
            except TimeoutError:
                missing = sorted(set(range(1, count)) - present.keys())
                problem = f"no word of process {', '.join(map(str, missing))} in time (initialization_timeout)"
                break
            except (OSError, ValueError):
                continue  # nobody of ours
            strangers.append(other)
            if said["count"] != count:
                problem = f"process {said['number']} says num_processes={said['count']}, process 0 says {count}"
            elif said["number"] in present or said["number"] == 0:
                problem = f"two processes say process_id={said['number']}; each number is for one"
            else:
                present[said["number"]] = other
        for other in strangers:
            try:
                other.sendall(json.dumps({"problem": problem}).encode() + b"\n")
            except OSError:
                pass
            other.close()
    return problem


def _report(host: str, port: int, words: dict, deadline: float) -> str:
    """Come to process 0 and hear how it went."""
    last: Exception | None = None
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((host, port), timeout=max(0.1, deadline - time.monotonic())) as s:
                s.sendall(json.dumps(words).encode() + b"\n")
                answer = _line(s)
                if answer:
                    return json.loads(answer)["problem"]
        except (OSError, ValueError) as error:  # process 0 may not be there yet
            last = error
        time.sleep(0.1)
    return f"process 0 did not answer in time ({last}): is coordinator_address right, and was process 0 started?"


def _line(s: socket.socket) -> str:
    with s.makefile() as f:
        return f.readline()
