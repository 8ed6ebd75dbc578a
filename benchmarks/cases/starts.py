"""Whole processes, from the start of Python to its end: CPU time, and time on the clock of the same runs."""

from pathlib import Path

from ..case import Case

SETUP = "from benchmarks.starts import first, second, wall"
NAMES = sorted(path.stem for path in Path(__file__).parents[1].joinpath("starts").glob("[a-z]*.py"))
KEPT = "upstream:with its cache"  # upstream keeps compiled programs only if it is configured


def _cases(name, which, target, measure):
    """The first and the second start of a program."""
    ours = measure.format(which)
    alone = {"ours": ours, "upstream": measure.format("first"), KEPT: ours}
    setup = dict.fromkeys(alone, SETUP)
    peers = ("upstream",) if which == "first" else ("upstream", KEPT)
    return Case(name, alone, setup, peers=peers, target=target, unit="ms")


CASES = [
    _cases(f"{which} start/{name.replace('_', ' ')}, {what}", which, target, measure.replace("NAME", repr(name)))
    for which, target in (("first", 0.6), ("second", (0.4, 0.7)))
    for name in NAMES
    for what, measure in (("CPU", "{}(NAME)"), ("clock", "wall({}, NAME)"))
]
