"""Public functions of arrays that are split over explicit axes. Runs on four CPU devices in one process.

Results are compiled as a sample, or all with the environment variable BEDRAX_ALL_RECORDS=1.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("splits.py")


@pytest.mark.parametrize("part", ["Array", "numpy.", "lax.", "nn.", "image.", "scipy.", "random.", "ops."])
def test_split_operands(part):
    """The value is that of whole operands, or an error of splits; the type of a gradient is that of its argument."""
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    command = [sys.executable, PROGRAM, "check", part]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3000, env=environment, cwd=PROGRAM.parent)
    assert done.returncode == 0, done.stderr[-3000:]
    *wrong, (last, count, _) = [line.split("\t") for line in done.stdout.splitlines()]
    assert last == "cases" and int(count) > 0
    assert not wrong, "\n".join(map("  ".join, wrong))
