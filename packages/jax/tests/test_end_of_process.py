"""The end of a process while daemon threads compute: no crash, and no wait for threads that never end.

`BEDRAX_FAULTS=whole` (`nox -s faults`) ends many processes of each kind.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs")
WHOLE = os.environ.get("BEDRAX_FAULTS") == "whole"
KINDS = ["known", "eager", "put", "trace", "derivative", "read", "block", "callback", "in callback", "random"]


def end(*arguments, code=0, program="end_of_daemons.py"):
    command = [sys.executable, PROGRAMS / program, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=100, env=os.environ | {"JAX_PLATFORMS": "cpu"}
    )
    assert (done.returncode, done.stderr) == (code, ""), done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("kind", KINDS if WHOLE else ["known", "trace", "put", "in callback"])
def test_a_daemon_thread_does_not_abort_the_end(kind):
    for _ in range(25 if WHOLE else 2):
        assert end(kind) == "1\n"


def test_many_daemon_threads_do_not_abort_the_end():
    for _ in range(25 if WHOLE else 2):
        assert end("mixed", str(len(KINDS))) == f"{len(KINDS)}\n"


def test_programs_run_in_atexit_functions():
    """Functions of `atexit` run programs after the threads have stopped. The exit code is the program's own."""
    assert end(program="computing_at_the_end.py", code=3) == "14.0\n"
