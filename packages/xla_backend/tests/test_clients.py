"""Forgotten clients. Each test runs in a separate process, because arrays of old clients must not be used any more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs")


def run(*arguments):
    command = [sys.executable, PROGRAMS / "forgotten_clients.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("use", ["devices", "operation", "call", "compiled", "map", "meshes", "linear algebra"])
def test_no_cache_keeps_a_client_alive(use):
    """A compiled program is compiled again, for the present devices."""
    assert run(use).split() == ["1", "True", "2", "True", "3", "True"]


def test_the_error_names_the_platforms_of_clients_still_in_use():
    out = run("held")
    assert "holds on to the clients of ['cpu']" in out and out.endswith("False\n")


def threads_of_a_client(devices, **environment):
    """The size of the pool of the client, in which all pools have one size."""
    environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    environment = {k: v for k, v in os.environ.items() if k not in ("NPROC", "PJRT_NPROC")} | environment
    command = [sys.executable, PROGRAMS / "threads_of_a_client.py"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="the system does not list threads")
def test_the_pool_has_three_threads_for_each_of_several_devices():
    cores = len(os.sched_getaffinity(0))
    assert threads_of_a_client(1) == cores
    assert threads_of_a_client(8) == max(cores, 24)
    assert threads_of_a_client(8, NPROC="1") == 24
    assert threads_of_a_client(8, PJRT_NPROC="50", NPROC="1") == 50


@pytest.mark.parametrize("platforms", ["", "cpu"])
def test_platforms_that_are_not_used_have_a_reason(platforms):
    command = [sys.executable, PROGRAMS / "unused_platforms.py"]
    done = subprocess.run(command, env={**os.environ, "JAX_PLATFORMS": platforms}, capture_output=True, text=True)
    reason = "jax_platforms is 'cpu'" if platforms else "RuntimeError: it does not start"
    assert done.stdout.strip() == reason, done.stderr
