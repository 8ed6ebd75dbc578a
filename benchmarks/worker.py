"""Runs code and measures it, in the environment of its interpreter. Needs the standard library only.

Reads one JSON object per line and answers with one: `{"open": code}` sets a case up; `{"sample": seconds}`
measures it for about that time and answers `{"value": smallest}`; `{"save": path, "result": expression}` writes the arrays of
the expression to a file. An exception gives the answer `{"error": text}`.
"""

import gc
import json
import os
import resource
import sys
import time
import warnings
from pathlib import Path


def compile_loop(statement: str, namespace: dict):
    """A function `loop(number)` that executes the statement `number` times, with little overhead."""
    body = "\n        ".join(statement.splitlines())
    source = f"def loop(number):\n    for _ in range(number):\n        {body}\n"
    exec(compile(source, "<statement>", "exec"), namespace)
    return namespace["loop"]


def peak() -> int:
    """The peak memory of this process in KiB. On Linux, `getrusage` of a new process includes its parent's peak."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


class Opened:
    """A case that is set up."""

    def __init__(self, code: dict):
        self.namespace = {"__name__": "benchmark"}
        self.unit = code["unit"]
        self.statement = code["statement"]
        exec(compile(code["setup"], "<setup>", "exec"), self.namespace)
        self.prepare = compile(code["prepare"], "<prepare>", "exec") if code["prepare"] else None
        self.loop = compile_loop(code["statement"], self.namespace)
        self.number = None

    def time(self, number: int) -> float:
        if self.prepare:
            exec(self.prepare, self.namespace)
        start = time.process_time()
        self.loop(number)
        return time.process_time() - start

    def sample(self, seconds: float) -> float:
        """The smallest CPU time of one execution, in samples that last `seconds` in all."""
        if self.unit == "MB":
            before = peak()
            self.loop(1)
            return (peak() - before) / 1024
        if self.unit != "s":
            return eval(self.statement, self.namespace)
        if seconds == 0:  # a new process: the first execution counts
            return self.time(1)
        if self.number is None:
            self.time(1)  # the first execution fills caches
            self.number = 1
            while not self.prepare and self.time(self.number) < seconds / 20:
                self.number *= 2
        gc.collect()
        gc.disable()
        try:
            end = time.process_time() + seconds
            best = self.time(self.number)
            while time.process_time() < end:
                best = min(best, self.time(self.number))
        finally:
            gc.enable()
        return best / self.number

    def save(self, result: str, path: str) -> None:
        """Write the arrays of an expression to a file of NumPy."""
        import numpy

        numpy.savez(path, *eval(result, self.namespace))


def main() -> None:
    warnings.simplefilter("ignore")
    sys.path.append(str(Path(__file__).parents[1]))  # for `benchmarks.programs`
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the output of the measured code must not look like an answer
    opened = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "open" in request:
                opened = Opened(request["open"])
                answer = {}
            elif "save" in request:
                opened.save(request["result"], request["save"])
                answer = {}
            else:
                answer = {"value": opened.sample(request["sample"])}
        except BaseException as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
