"""Pictures of shardings, queries of them, and values with one common sharding; eight CPU devices in one process."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")

PROGRAM = PROGRAMS / "sharding_pictures.py"


def test_eight_cpu_devices():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "TF_CPP_MIN_LOG_LEVEL": "2"}
    environment["PYTHONIOENCODING"] = "utf-8"
    done = subprocess.run(
        [sys.executable, PROGRAM], capture_output=True, text=True, encoding="utf-8", timeout=200, env=environment
    )
    assert done.returncode == 0, done.stderr
