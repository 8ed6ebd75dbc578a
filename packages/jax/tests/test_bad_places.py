"""Wrong placements: errors of functions of shardings, specs or meshes name the argument, the axis, the sizes, a remedy.

One process with eight CPU devices runs a table: functions by the fault of the placement that they get.
"""

import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")

PROGRAM = PROGRAMS / "bad_places.py"


def test_errors_of_bad_places():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, timeout=200, env=environment)
    assert done.returncode == 0, done.stderr
    *wrong, last = done.stdout.splitlines()
    assert not wrong and int(last.split()[0]) > 100, done.stdout
