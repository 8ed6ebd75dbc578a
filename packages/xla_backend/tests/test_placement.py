"""Placement of arrays: commitment, the default device, current meshes; eight CPU devices in one process."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bedrax import lax
from bedrax.core.jitting import jit

PROGRAM = Path(__file__).with_name("programs") / "placement.py"
# The packages above this one that a program needs.
NEEDS = {
    "filled_like_an_array": ["random"],
    "keys": ["random"],
    "results_are_placed": ["random", "numpy"],
    "set_mesh_places_what_nothing_else_places": ["numpy"],
}
PROGRAMS = (
    "constraints_with_layouts",
    "set_mesh_places_what_nothing_else_places",
    "filled_like_an_array",
    "specs_of_results",
    "specs_over_several_kinds_of_axes",
    "put_commits",
    "default_device_before",
    "default_device_inside",
    "meshes_in_force",
    "derivatives_go_back",
    "inside_transformations",
    "what_stages_say",
    "programs_say_where",
    "captured_arrays",
    "keys",
    "results_are_placed",
    "callbacks",
    "callbacks_that_call",
    "batches",
    "computation_follows_data",
    "loops_and_factorizations",
    "partitioners",
    "bad_specs",
)


def test_platforms_of_the_environment():
    program = "import bedrax.xla_backend as xla; print(xla.default_backend(), len(xla.devices()))"
    for wanted, answer in (("cpu", "cpu 8"), ("rocket", "jax_platforms")):
        environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": wanted}
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, env=environment
        )
        assert answer in done.stdout + done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_eight_cpu_devices(name):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(f"bedrax.{package}")
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    done = subprocess.run([sys.executable, PROGRAM, name], capture_output=True, text=True, timeout=100, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("shape", [(), (3,), (100, 100)])
def test_an_array_of_the_hosts_data_has_memory_of_its_own_that_a_donated_operand_gives_to_a_result(shape):
    memory = np.zeros(int(np.prod(shape)) + 16, np.float32)
    start = -memory.ctypes.data % 64 // 4  # XLA shares memory that is aligned to 64 bytes
    aligned = memory[start : start + int(np.prod(shape))].reshape(shape)
    x = lax.asarray(aligned)
    where = x.unsafe_buffer_pointer()
    assert not memory.ctypes.data <= where < memory.ctypes.data + memory.nbytes
    memory[:] = 5
    out = jit(lambda x: lax.add(x, 1.0), donate_argnums=0)(x)
    assert x.is_deleted() and out.unsafe_buffer_pointer() == where
    np.testing.assert_array_equal(out, np.ones(shape, np.float32))
