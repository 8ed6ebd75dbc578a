"""The number of operations that a function runs, as an array: the rounds of a loop may depend on the data.

A trace processes each operation. An operation that holds programs (`jit`, `scan`, `while_loop`, `cond`, `checkpoint`)
is rebuilt by `bedrax.core.holders.reporting`: each program also returns its own count, and a loop carries the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bedrax import lax
from bedrax.core.avals import ShapedArray
from bedrax.core.facts import cached
from bedrax.core.holders import Reports, reporting
from bedrax.core.ir import Jaxpr, run
from bedrax.core.passes import called_program
from bedrax.core.staging import program_of
from bedrax.core.tables import programs, with_programs
from bedrax.core.tracing import Trace, current, entered, set_trace

_COUNT = ShapedArray((), np.dtype(np.int32))


class CountTrace(Trace):
    """Passes all operations on, and counts them in `total`."""

    __slots__ = ("total",)

    def __init__(self, parent: Trace):
        super().__init__(parent)
        self.total: Any = np.int32(0)

    def process(self, prim, args, params):
        """Count an operation, or the operations of its programs."""
        uses = programs[prim](params)
        program = called_program(prim, params)
        if program is not None and not with_programs.states(prim):  # a function with custom rules
            return run(program, *args)
        with set_trace(self.parent):
            if not uses:
                self.total = lax.add(self.total, np.int32(1))
                return self.parent.process(prim, args, params)
            (count,), results = reporting(uses, len(args), COUNTS).bind(prim, params, args, COUNTS)
            self.total = lax.add(self.total, count)
            return results


def _counted(f: Callable, *args: Any) -> tuple[Any, Any]:
    with entered(CountTrace(current.trace)) as trace:
        out = f(*args)
    return trace.total, out


@cached
def _counted_program(program: Jaxpr) -> Jaxpr:
    def flat(*args):
        total, outs = _counted(run, program, *args)
        return [total, *outs]

    return program_of(flat, program.in_avals)


def _reports(program: Jaxpr) -> tuple[Jaxpr, bool]:
    return _counted_program(program), True


def _none(types: tuple) -> list:
    return [np.int32(0)]


def _sum(first: list, second: list) -> list:
    return [lax.add(first[0], second[0])]


COUNTS = Reports(_reports, (_COUNT,), _none, _sum)


def count(f: Callable) -> Callable:
    """Returns a function that also returns the number of operations that `f` runs.

    Args:
      f: takes and returns pytrees of arrays.

    Returns:
      A function of the same arguments that returns ``(number, result of f)``; the number is an int32 scalar.
    """
    return lambda *args: _counted(f, *args)
