"""Room for executables in the process.

Each executable for the CPU takes some mappings of memory, of which Linux gives a process a fixed number
(`vm.max_map_count`); where none is left, the compiler dies, and the process with it. So before that, what was
compiled is forgotten: programs that are still wanted are compiled again when they are called.
"""

from __future__ import annotations

import gc
import itertools
import warnings
from collections.abc import Callable
from pathlib import Path

EVERY = 256
"""After how many programs the mappings are counted again."""

SHARE = 0.8
"""The share of the limit that may be taken."""

forget: list[Callable[[], None]] = []
"""What drops executables that can be made again."""

_compiled = itertools.count(1)


def limit() -> int | None:
    """How many mappings the process may have; None if the system does not say."""
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        return None


def taken() -> int:
    """How many mappings the process has."""
    return Path("/proc/self/maps").read_bytes().count(b"\n")


def make() -> None:
    """Called before a program is compiled: forget executables if there may soon be no room for more."""
    if next(_compiled) % EVERY:
        return
    allowed = limit()
    if allowed is None or taken() < SHARE * allowed:
        return
    for drop in forget:
        drop()
    gc.collect()
    if (left := taken()) >= SHARE * allowed:
        warnings.warn(
            f"the process has {left} mappings of memory, of {allowed} that the system allows (vm.max_map_count), after"
            " all compiled programs that could be forgotten were: it will end when none is left. Hold fewer compiled"
            " programs, or have the limit raised",
            RuntimeWarning,
            stacklevel=2,
        )
