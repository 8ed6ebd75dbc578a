"""A process of a run is killed during training. The restarted run continues from the last checkpoint of Orbax."""

import itertools
import os
import pathlib
import re
import subprocess
import sys

import pytest

# Ports below those of outgoing connections. No other process has this number, so no other test has these ports.
PORTS = itertools.cycle(20000 + (8 * os.getpid() + i) % 12000 for i in range(8))
PROGRAM = pathlib.Path(__file__).parent / "programs/train_and_die.py"


def run(count, folder, steps, dies=-1):
    """(exit code, losses by step, output) of each process."""
    port = next(PORTS)
    processes = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(i), str(count), str(port), str(folder), str(steps), str(dies)],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for i in range(count)
    ]
    try:
        outputs = [p.communicate(timeout=240)[0] for p in processes]
    finally:
        for p in processes:
            p.kill()
    # Gloo writes to the same stream, also into a line.
    losses = [{int(k): float(x) for k, x in re.findall(r"loss (\d+) ([-\d.e]+)", out)} for out in outputs]
    return [(p.returncode, x, out) for p, x, out in zip(processes, losses, outputs, strict=True)]


@pytest.mark.needs("tensorstore")  # Orbax does
def test_a_killed_run_is_continued(tmp_path):
    (code, expected, out), *_ = run(1, tmp_path / "one", 5)
    assert code == 0 and sorted(expected) == list(range(5)), out[-3000:]

    (zero, losses, out), (one, *_) = run(2, tmp_path / "two", 5, dies=3)
    assert one == 17
    # The collective that waits for it fails immediately; without one, the coordination service misses its heartbeat.
    missed = "tasks are unhealthy (stopped sending heartbeats):\n1\n" in out
    assert zero != 0 and (missed or re.search(r"process 1 \(at \S+\) of the 2 of this run is gone", out)), out[-3000:]
    before = losses

    (zero, losses, out), (one, _, other) = run(2, tmp_path / "two", 5)
    assert (zero, one) == (0, 0), (out + other)[-3000:]
    assert sorted(losses) == [3, 4], "it goes on after the last checkpoint"
    for k, x in {**before, **losses}.items():
        assert abs(x - expected[k]) < 1e-6, (k, x, expected[k])
