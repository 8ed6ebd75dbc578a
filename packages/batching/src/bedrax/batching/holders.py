"""Batching of operations that hold programs: the programs are batched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bedrax.batching.tables import AxisData, batch_rules, to_front
from bedrax.batching.trace import batch_jaxpr
from bedrax.core.holders import Lifted, arguments, lifted, of_uses, roles
from bedrax.core.ir import Jaxpr
from bedrax.core.tables import CARRY, ROW, Use, Wire, programs, with_programs
from bedrax.core.tracing import Primitive
from bedrax.lax.axes import move_axis


class _Derive(NamedTuple):
    """Derives batched programs; the mark of a value is its mapped axis."""

    axis: AxisData

    def __call__(
        self, program: Jaxpr, dims: tuple[Any, ...], force: tuple[Any, ...] | None
    ) -> tuple[Jaxpr, tuple[Any, ...]]:
        return batch_jaxpr(program, self.axis, dims, force)


class Batched(NamedTuple):
    """An operation on batches.

    Attributes:
      lifted: the operation.
      to_front: the mapped carries among the operands. They have to be mapped at axis 0.
      to_second: the rows among the operands that are mapped at axis 0. Each iteration takes one element of a row.
      dims: the mapped axes of the results.
    """

    lifted: Lifted
    to_front: tuple[int, ...]
    to_second: tuple[int, ...]
    dims: tuple[int | None, ...]

    def values(self, axis: AxisData, args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
        """The operands in the layout that the operation takes."""
        values = list(args)
        for i in self.to_front:
            values[i] = to_front(args[i], dims[i], axis.size)
        for i in self.to_second:
            values[i] = move_axis(args[i], 0, 1)
        return values

    def bind(self, prim: Primitive, values: Sequence[Any], params: dict[str, Any]) -> tuple[list[Any], tuple[Any, ...]]:
        """Bind the operation. Returns its results and their mapped axes."""
        held = self.lifted.held
        if held.straight:
            return prim.bind(
                *values, **with_programs[prim](params, held.programs, held.operands, held.results)
            ), self.dims
        out = held.bind(prim, params, operand=values)
        return [out["result", r] for r in range(len(out))], self.dims


def _entering(operands: Sequence[Wire], dims: tuple[int | None, ...]) -> tuple:
    """The mapped axes of the programs' arguments, given the operands' roles and mapped axes; see `batched`."""
    marks = list(dims)
    for i, wire in enumerate(operands):
        d = dims[i]
        if d is not None and wire.kind in (CARRY, ROW):
            marks[i] = 0 if wire.kind == CARRY else max(d - 1, 0)
    return tuple(marks)


@of_uses
def _batched(uses: Sequence[Use], axis: AxisData, dims: tuple[int | None, ...]) -> Batched:
    operands, results = roles(uses, len(dims))
    found = lifted.derive(uses, _entering(operands, dims), _Derive(axis), False, 0)  # kept as a part of this one
    fronts = [i for i, w in enumerate(operands) if w.kind == CARRY and found.marks[i] == 0 and dims[i] != 0]
    seconds = [i for i, w in enumerate(operands) if w.kind == ROW and dims[i] == 0]
    places = [d + 1 if d is not None and w.kind == ROW else d for d, w in zip(found.out_marks, results, strict=True)]
    return Batched(found, tuple(fronts), tuple(seconds), tuple(places))


def batched(uses: Sequence[Use], axis: AxisData, dims: Sequence[int | None]) -> Batched:
    """An operation that holds programs, on operands that are mapped at `dims`.

    A carry is mapped at axis 0 if its initial value is mapped or an iteration returns a mapped value. A row keeps its
    first axis.
    """
    dims = tuple(dims)
    found = _batched.known(uses, axis, dims)
    if found is None:
        marks = _entering(roles(uses, len(dims))[0], dims)
        for use in uses:  # Inline, not in a function: deeply nested programs need few frames each.
            batch_jaxpr(use.program, axis, arguments(use, marks), None)
        found = _batched(uses, axis, dims)
    return found


def batches_programs(*prims: Primitive) -> None:
    """Register the batching rule of operations that hold programs."""
    for prim in prims:

        def rule(axis, args, dims, prim=prim, **params):
            uses, dims = programs[prim](params), tuple(dims)
            found = _batched.known(uses, axis, dims)
            if found is None and not (uses[0].carries or uses[0].slices):  # as in `batched`, with one frame less
                batch_jaxpr(uses[0].program, axis, dims, None)
            found = found or batched(uses, axis, dims)
            values = found.values(axis, args, dims) if found.to_front or found.to_second else args
            return found.bind(prim, values, params)

        batch_rules.add(prim, rule, "program")
