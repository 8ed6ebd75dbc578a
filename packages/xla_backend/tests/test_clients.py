"""Forgotten clients. Each test runs in a separate process, because arrays of old clients must not be used any more."""

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


@pytest.mark.parametrize("use", ["devices", "operation", "call", "compiled", "map", "linear algebra"])
def test_no_cache_holds_on_to_a_client(use):
    """A compiled program is compiled again, for the present devices."""
    assert run(use).split() == ["1", "True", "2", "True", "3", "True"]


def test_who_holds_on_to_a_client_is_told():
    out = run("held")
    assert "holds on to the clients of ['cpu']" in out and out.endswith("False\n")
