"""Estimates of the work of equations, and the memory that a program holds along them.

The estimates follow from the types of an equation. They do not include what the compiler fuses or
removes. The page has the figures of the compiled program next to them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from bedrax.core.ir import Eqn, Jaxpr, Literal
from bedrax.core.tables import INDEX, Use, count, programs, wires


class Cost(NamedTuple):
    """The work of an equation, or of a program.

    Attributes:
      flops: operations on numbers; None where no estimate exists.
      moved: bytes of the operands and results.
      open: whether a loop of unknown length is inside. It counts as one round.
    """

    flops: int | None
    moved: int
    open: bool = False

    def __add__(self, other: Cost) -> Cost:  # type: ignore[override]
        flops = None if self.flops is None or other.flops is None else self.flops + other.flops
        return Cost(flops, self.moved + other.moved, self.open or other.open)

    def times(self, n: int) -> Cost:
        """Return the work of n rounds."""
        return Cost(None if self.flops is None else n * self.flops, n * self.moved, self.open)


def size_of(aval: Any) -> int:
    """Return the number of elements of a type; 0 for types of no array or of unknown size."""
    shape = getattr(aval, "shape", None)
    return math.prod(shape) if shape is not None and all(type(n) is int for n in shape) else 0


def bytes_of(aval: Any) -> int:
    """Return the bytes of a value of a type; 0 for types of no array or of unknown size."""
    return size_of(aval) * int(getattr(getattr(aval, "dtype", None), "itemsize", 0) or 0)


def cost_of(eqn: Eqn) -> Cost:
    """Return the work of one equation, with that of the programs inside of it."""
    uses = programs[eqn.primitive](eqn.params)
    if uses and not combines(eqn):
        return _of_programs(eqn, uses)
    moved = sum([bytes_of(v.aval) for v in (*eqn.invars, *eqn.outvars) if type(v) is not Literal])
    return Cost(_flops(eqn), moved)


def cost_of_program(program: Jaxpr) -> Cost:
    """Return the work of all equations of a program."""
    total = Cost(0, 0)
    for eqn in program.eqns:
        total += cost_of(eqn)
    return total


def combines(eqn: Eqn) -> bool:
    """Return whether the programs of an equation combine elements of an operand, as those of reductions do."""
    uses = programs[eqn.primitive](eqn.params)
    return bool(uses) and all(use.operands is not None and None in use.operands for use in uses)


def _of_programs(eqn: Eqn, uses: Sequence[Use]) -> Cost:
    costs = [cost_of_program(use.program) for use in uses]
    if _selects(eqn, uses):
        return max(costs, key=lambda cost: (cost.flops or 0, cost.moved))
    total = Cost(0, 0)
    for cost in costs:
        total += cost
    rounds = next((use.rounds for use in uses if use.rounds is not None), None)
    if any(use.carries for use in uses) and type(rounds) is not int:
        return total._replace(open=True)
    return total.times(rounds) if type(rounds) is int else total


def _selects(eqn: Eqn, uses: Sequence[Use]) -> bool:
    """Whether one of several programs runs, which an operand selects."""
    if len(uses) < 2 or any(use.operands is None for use in uses):
        return False
    operands, _ = wires(list(uses), len(eqn.invars), len(eqn.outvars))
    return count(operands, INDEX) > 0


_MOVES = {"shaping", "indexing", "conversions", "markers", "placement", "references", "callbacks", "collectives"}
_ONE_PER_ELEMENT = {"elementwise", "random_bits"}


def _flops(eqn: Eqn) -> int | None:
    family, name = eqn.primitive.family, eqn.primitive.name
    operands = [v.aval for v in eqn.invars]
    results = sum([size_of(v.aval) for v in eqn.outvars])
    largest = max([size_of(a) for a in operands], default=0)
    if name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        return 2 * results * math.prod([operands[0].shape[d] for d in contracted])
    if name == "conv_general_dilated":
        features = eqn.params["dimension_numbers"].rhs_spec[0]
        return 2 * results * size_of(operands[1]) // max(1, operands[1].shape[features])
    if family in _MOVES:
        return 0
    if family in _ONE_PER_ELEMENT:
        return results
    if family in ("reductions", "cumulative"):
        return largest
    if family == "fft":
        return round(5 * results * math.log2(max(2, *operands[0].shape[-1:])))
    if family == "sorting":
        return round(largest * math.log2(max(2, largest)))
    return None


class Step(NamedTuple):
    """The memory while one equation runs.

    Attributes:
      live: bytes of all values that exist then: arguments, constants, results so far that are used later, and results
        of this equation.
      inside: further bytes that the programs inside of the equation hold at most.
    """

    live: int
    inside: int

    @property
    def total(self) -> int:
        return self.live + self.inside


def memory_along(program: Jaxpr) -> list[Step]:
    """Return the memory during each equation, in the order of the program. Nothing is fused, and nothing shares memory."""
    last: dict[Any, int] = {}
    for i, eqn in enumerate(program.eqns):
        last.update((v, i) for v in eqn.invars if type(v) is not Literal)
    kept = {v for v in (*program.invars, *program.constvars, *program.outvars) if type(v) is not Literal}
    live = sum([bytes_of(v.aval) for v in (*program.invars, *program.constvars)])
    steps = []
    for i, eqn in enumerate(program.eqns):
        live += sum([bytes_of(v.aval) for v in eqn.outvars])
        steps.append(Step(live, _inside(eqn)))
        gone = {v for v in (*eqn.invars, *eqn.outvars) if type(v) is not Literal and v not in kept}
        live -= sum([bytes_of(v.aval) for v in gone if last.get(v, i) <= i])
    return steps


def _inside(eqn: Eqn) -> int:
    return max([_own(use.program) for use in programs[eqn.primitive](eqn.params)], default=0)


def _own(program: Jaxpr) -> int:
    """The bytes that a program holds at most, besides its arguments and results."""
    given = sum([bytes_of(v.aval) for v in (*program.invars, *program.constvars, *program.outvars)])
    return max(0, max([step.total for step in memory_along(program)], default=0) - given)
