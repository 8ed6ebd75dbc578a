"""Limit on memory mappings of executables in the process.

Each executable for the CPU takes some memory mappings. Linux limits their number per process (`vm.max_map_count`).
At the limit the compiler aborts the process. Before that, this module drops compiled programs. A dropped program is
compiled again at its next call.
"""

from __future__ import annotations

import gc
import itertools
import warnings
from collections.abc import Callable
from pathlib import Path

EVERY = 256
"""Number of compilations between two counts of the mappings."""

SHARE = 0.8
"""The share of the limit that may be used."""

forget: list[Callable[[], None]] = []
"""Functions that drop executables that can be compiled again."""

_compiled = itertools.count(1)


def limit() -> int | None:
    """The limit on mappings of the process; None if the system has no such file."""
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def taken() -> int:
    """Number of mappings of the process."""
    return Path("/proc/self/maps").read_bytes().count(b"\n")


def make_room() -> None:
    """Drop executables if the mappings are close to the limit. Called before a program is compiled."""
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
