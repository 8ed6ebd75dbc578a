"""`shard_map` on eight CPU devices, against its decomposition by NumPy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("programs") / "mapped_shards.py"
PROGRAMS = (
    "collectives",
    "derivatives",
    "loops",
    "nested",
    "partly",
    "partly_over_a_split_value",
    "places",
    "inside_and_outside",
    "inferred",
    "ragged",
    "calls",
    "calls_in_order",
    "keys_and_factorizations",
    "explain",
    "explicit",
    "frames_of_a_known_call",
    "collectives_of_pmap",
    "all_of_pmap",
)


def run(name, shardy="1"):
    environment = {
        **os.environ,
        "JAX_USE_SHARDY_PARTITIONER": shardy,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    command = [sys.executable, PROGRAM, name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    if name == "keys_and_factorizations":
        pytest.importorskip("bedrax.random")  # above this package
    run(name)


@pytest.mark.parametrize(
    "name", ["loops", "nested", "partly", "partly_over_a_split_value", "calls", "inside_and_outside"]
)
def test_programs_for_the_other_partitioner(name):
    run(name, shardy="0")
