"""Programs for several devices: splits are XlaSharding operations of a graph, and need a graph."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")

PROGRAM = PROGRAMS / "sharding_marks.py"


def test_splits_are_marked():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "TF_CPP_MIN_LOG_LEVEL": "3"}
    run = subprocess.run(
        [sys.executable, PROGRAM], capture_output=True, text=True, timeout=240, check=False, env=environment
    )
    assert run.returncode == 0 and "done" in run.stdout, run.stderr[-3000:]
