"""Measurement: the environments take turns, and the smallest CPU time of each counts."""

import itertools
import json
import select
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .case import Case
from .environments import Environment

TIMEOUT = 300.0  # seconds for one answer of a worker
ROUNDING = 100  # in units of the dtype's precision: sums in another order differ by so much
PROCESSES = 2  # per environment: the placement of its memory makes one process faster than another


class Worker:
    """A process that measures in one environment. A new one is started if it dies."""

    def __init__(self, environment: Environment):
        command = [environment.python, Path(__file__).parent / "worker.py"]
        self.process = subprocess.Popen(
            command, env=environment.variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(self, **request) -> dict:
        """Send a request and return the answer. A dead process and a timeout are answers, too."""
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": "the process died"}
        ready, _, _ = select.select([self.process.stdout], [], [], TIMEOUT)
        if not ready:
            self.close()
            return {"error": f"no answer within {TIMEOUT:.0f} s"}
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"the process died (exit code {self.process.wait()})"}

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def environment_of(name: str) -> str:
    """The environment that measures `ours:what`, or the environment `name`."""
    return name.partition(":")[0]


def measure_fresh(case: Case, environment: Environment, name: str) -> dict:
    """One sample in a new process."""
    worker = Worker(environment)
    answer = worker.ask(open=case.code(name))
    if "error" not in answer:
        answer = worker.ask(sample=0)
    worker.close()
    return answer


def difference(ours: list[np.ndarray], peer: list[np.ndarray]) -> str:
    """The difference of two lists of arrays as a text, or "" if there is only rounding. Rounding is measured at the largest element of
    all: a gradient that is zero is computed as the rounding of others."""
    if len(ours) != len(peer):
        return f"{len(ours)} arrays, not {len(peer)}"
    largest = max((float(np.abs(b[np.isfinite(b)]).max(initial=0)) for b in peer if b.dtype.kind in "fc"), default=0.0)
    for i, (a, b) in enumerate(zip(ours, peer, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"array {i} is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
        if b.dtype.kind not in "fc":
            equal = np.array_equal(a, b)
        else:
            equal = np.allclose(a, b, rtol=0, atol=ROUNDING * np.finfo(b.dtype).eps * largest, equal_nan=True)
        if not equal:
            return f"array {i} differs at {np.sum(a != b)} of {a.size} elements, by up to {np.nanmax(np.abs(a - b))}"
    return ""


def compare_results(case: Case, workers: dict[str, Worker]) -> dict:
    """An error if the results of ours differ from those of the first peer."""
    with tempfile.TemporaryDirectory() as folder:
        arrays = {}
        for name in ("ours", case.peers[0]):
            path = Path(folder) / f"{name}.npz"
            if "error" in (answer := workers[name].ask(save=str(path), result=case.result)):
                return answer
            with np.load(path) as stored:
                arrays[name] = list(stored.values())
    found = difference(*arrays.values())
    return {"error": f"the results differ from those of {case.peers[0]}: {found}"} if found else {}


def measure(
    cases: list[Case], environments: dict[str, Environment], rounds: int, seconds: float
) -> Iterator[tuple[Case, dict[str, dict]]]:
    """Yield each case with, by environment, `{"value": smallest, "samples": [...]}` or `{"error": text}`.

    The cases share PROCESSES processes per environment, used in turn. Every round samples every environment once, so
    that a
    busy moment of the machine affects all of them. The order changes from round to round.
    """
    workers: dict[tuple[str, int], Worker] = {}
    processes = min(PROCESSES, rounds)
    for case in cases:
        names = [name for name in ("ours", *case.peers) if environment_of(name) in environments]
        results: dict[str, dict] = {name: {"samples": []} for name in names}
        if not case.fresh:
            for key in itertools.product(names, range(processes)):
                if key not in workers or not workers[key].alive:
                    workers[key] = Worker(environments[environment_of(key[0])])
                results[key[0]].update(workers[key].ask(open=case.code(key[0])))
            if case.result and not any("error" in result for result in results.values()) and len(names) > 1:
                results["ours"].update(compare_results(case, {name: workers[name, 0] for name in names}))
        for turn in range(rounds):
            for name in names if turn // processes % 2 == 0 else names[::-1]:
                if "error" in results[name]:
                    continue
                if case.fresh:
                    answer = measure_fresh(case, environments[environment_of(name)], name)
                else:
                    answer = workers[name, turn % processes].ask(sample=seconds)
                if "error" in answer:
                    results[name]["error"] = answer["error"]
                else:
                    results[name]["samples"].append(answer["value"])
        for result in results.values():
            if "error" not in result:
                result["value"] = min(result["samples"])
        yield case, results
    for worker in workers.values():
        worker.close()
