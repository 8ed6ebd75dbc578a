"""A sample of the long runs over many devices, which `nox -s soak` makes whole: every kind of run ends.

A loop that hangs does so after some 32 steps: then 32 programs wait on each device.
"""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs" / "long_runs.py"


def ends(*arguments):
    command = [sys.executable, PROGRAM, "--timeout=180", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "names",
    [
        ["jitted_mean", "mixed_with_one_device"],
        ["eager_sums", "pure_callbacks"],
        ["donated_arguments", "debug_callbacks"],
    ],
    ids="-".join,
)
def test_a_loop_over_eight_devices_ends(names):
    ends(*names, "--steps=300")


@pytest.mark.parametrize(
    "name", ["threads_with_collectives", "threads_on_overlapping_meshes", "threads_with_everything"]
)
def test_threads_take_turns(name):
    """Also with more threads than a pool could have room for."""
    ends(name, "--steps=150", "--threads=24" if name == "threads_with_collectives" else "--threads=6")


def test_a_loop_over_sixty_four_devices_ends():
    ends("shard_map_psum", "--steps=60", "--devices=64")


def test_a_loop_of_two_processes_ends():
    ends("data_parallel_gradient", "pmap_psum", "--steps=100", "--processes=2")
