"""The tool that measures on a GPU, run on the CPU as a rehearsal."""

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[1] / "tools" / "on_gpu.py"


def run(*args):
    return subprocess.run([sys.executable, TOOL, *args], capture_output=True, text=True, timeout=300)


def test_a_rehearsal():
    done = run("--device", "cpu", "--small", "faq", "peak")
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert any("10 x 10" in row for row in rows) and any("attention" in row and "TFLOP/s" in row for row in rows)
    assert "It failed" not in done.stdout


def test_records_of_a_rehearsal():
    done = run("--device", "cpu", "--small", "records")
    good, _, every = done.stdout.partition(" records give")[0].split("\n")[-1].rpartition(" of ")
    assert done.returncode == 0 and good == every and int(every) > 30, done.stdout
    assert "lapack_" in done.stdout.partition("Custom calls that were executed")[2]


def test_missing_devices_and_unknown_sections_are_refused():
    assert "no device answers" in run("--device", "gpu", "faq").stderr
    assert "unknown sections ['dance']" in run("dance").stderr
