"""Explicit axes: types hold shardings. Runs on eight CPU devices in one process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("bedrax.numpy")  # above this package

PROGRAM = Path(__file__).with_name("programs") / "explicit_axes.py"
PROGRAMS = (
    "no_collectives",
    "types",
    "a_constraint_says_what_is_known",
    "a_constraint_is_about_automatic_axes",
    "explicit_only_inside",
    "another_shape",
    "inferred",
    "rules",
    "batches",
    "keys",
    "gradients",
    "errors",
    "moving",
    "compiled_functions",
    "some_axes",
    "transformations",
    "training",
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_eight_cpu_devices(name):
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, PROGRAM, name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment)
    assert done.returncode == 0, done.stderr
