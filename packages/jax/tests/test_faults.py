"""Faults in use: concurrent first uses, interrupts, damaged files, depth, forks, leaks.

Each program runs in a process of its own. `BEDRAX_FAULTS=whole` (`nox -s faults`) runs many of each.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs")

WHOLE = os.environ.get("BEDRAX_FAULTS") == "whole"


def run(program: str, *arguments, timeout: float = 200) -> str:
    """The output of a program in the folder `programs`, in a new process that ends without an error."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, PROGRAMS / f"{program}.py", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


FIRST_USES = ["import", "operations", "linear algebra", "names", "modules"]


@pytest.mark.parametrize("name", FIRST_USES if WHOLE else FIRST_USES[:3])
def test_first_uses_in_concurrent_threads(name):
    for _ in range(8 if WHOLE else 1):
        out = run("first_use_from_threads", name)
        assert out.startswith("0"), out


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs interval timers")
def test_interrupts_leave_no_state():
    count = 2000 if WHOLE else 20
    hits, left = map(int, run("interrupts", count, timeout=3000).split())
    # Python may run the handler between the end of a block and the first instruction of `__exit__`, which no code can
    # guard: about one interrupt in 1500 of this program, which consists mostly of such blocks.
    assert hits > 0 and left <= 1 + count // 500


def test_trees_that_are_too_deep_are_an_error():
    out = run("deep_trees")
    assert out.split() == ["raised"] * 20


def test_depth_and_width_that_upstream_takes():
    out = run("depth_and_width")
    assert out.split() == ["60.0", "1.0", "500.0"]


def test_programs_nest_as_deeply_as_upstreams():
    """Programs nest within Python's limit of 1,000 frames. Upstream nests 122, 96, 60 and 60 on Python 3.11."""
    out = run("nested_programs")
    assert out.split() == ["115.0", "1.0", "75.0", "70.0"]


def test_functions_are_freed():
    out = run("freed_functions")
    assert out == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_after_the_start_warns():
    out = run("forks")
    assert out.splitlines() == ["[]", "['RuntimeWarning']"]


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the system does not say how much memory is taken")
def test_calls_of_24_threads_keep_no_memory():
    """Traced functions that raise keep none either. In bytes per call: one leaked array would be several hundred."""
    assert float(run("kept_memory", 400 if WHOLE else 60, timeout=600)) < (150 if WHOLE else 1500)


def test_errors_keep_no_tracers():
    """A kept error, without its traceback, keeps alive none of the tracers that existed when it was raised."""
    out = run("kept_tracers")
    assert out.split() == ["15", "0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs interval timers")
@pytest.mark.parametrize("seed", range(16) if WHOLE else [3])
def test_an_interrupted_first_use_can_be_repeated(seed):
    assert run("interrupted_first_use", seed) == "fine\n"


def test_no_interrupt_is_handled_while_c_modules_load():
    """Loading a C++ module calls Python; an exception there aborts the process. So no signal may be handled there."""
    out = run("interrupts_in_loaders")
    assert out.split() == ["True", "True", "0"]
