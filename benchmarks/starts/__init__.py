"""Whole processes, from the start of Python to its end. This module runs inside the compared environments.

`first(name)` runs the program ``benchmarks/starts/<name>.py`` without compiled programs on disk. `second(name)` runs it
with those that an earlier run has left. Each returns the CPU time in ms. `wall(...)` returns the time on the clock of a
run whose CPU time was returned before, or of a new one.
"""

import collections
import functools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in HERE.glob("[a-z]*.py")))

_walls: dict[tuple, collections.deque] = collections.defaultdict(collections.deque)


def _run(name: str, key: tuple, **variables: str) -> float:
    environment = {**os.environ, **variables}
    before, began = os.times(), time.perf_counter()
    command = [sys.executable, HERE / f"{name}.py"]
    done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _walls[key].append(1000 * (time.perf_counter() - began))
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace").strip().splitlines()[-1])
    after = os.times()
    user, system = (after.children_user - before.children_user), (after.children_system - before.children_system)
    return 1000 * (user + system)


def first(name: str) -> float:
    """A start without a cache of compiled programs."""
    return _run(name, ("first", name))


@functools.cache
def _folder(name: str) -> tempfile.TemporaryDirectory:
    """A folder with the compiled programs of a run."""
    folder = tempfile.TemporaryDirectory()
    _run(name, ("filling", name), **_kept(folder))
    return folder


def _kept(folder: tempfile.TemporaryDirectory) -> dict[str, str]:
    """Variables with which both implementations keep every compiled program in a folder."""
    return {
        "JAX_ENABLE_COMPILATION_CACHE": "1",
        "JAX_COMPILATION_CACHE_DIR": folder.name,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def second(name: str) -> float:
    """A start with the compiled programs of an earlier one."""
    return _run(name, ("second", name), **_kept(_folder(name)))


def wall(start, name: str) -> float:
    """The time on the clock, of a run of `start` whose CPU time is known if there is one."""
    walls = _walls[start.__name__, name]
    if not walls:
        start(name)
    return walls.popleft()
