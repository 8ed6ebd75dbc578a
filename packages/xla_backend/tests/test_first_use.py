"""The first use of every module, from many threads concurrently, in a fresh process."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs")

PROGRAM = PROGRAMS / "first_use_from_threads.py"


@pytest.mark.parametrize("how", ["imported", "offered"])
def test_first_use_from_many_threads(how):
    out = subprocess.run([sys.executable, PROGRAM, how], capture_output=True, text=True, check=False)
    assert out.stdout.strip() == "executor xla errors []", out.stdout + out.stderr


def test_a_backend_may_be_imported_during_a_trace():
    program = PROGRAMS / "backend_while_tracing.py"
    out = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert out.stdout.strip() == "xla 1", out.stdout + out.stderr
