"""Batching: reading a program as the same program on a batch.

A `BatchTracer` is a value with a mapped axis; its aval is that of one element. Rules run
in the parent trace on whole batches.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from bedrax import pytree
from bedrax.batching.tables import AxisData, batch_rules, to_axis
from bedrax.core import staging
from bedrax.core.avals import aval_functions, aval_of
from bedrax.core.columns import Column
from bedrax.core.facts import cached
from bedrax.core.ir import Jaxpr, eval_jaxpr
from bedrax.core.passes import axes_of
from bedrax.core.tables import named_axes, programs
from bedrax.core.tracing import Primitive, Trace, Tracer, checks_leaks, current, entered, extend_axes, lent
from bedrax.lax.primitives.custom_rules import staged

# Collectives that name the mapped axis turn into operations on it; see rules/collectives.py.
axis_rules = Column(
    "batching over the named axis", "bedrax.batching.rules",
    signature="rule(axis, args, dims, **params) -> (out, out_dim)",
)  # fmt: skip


_EMPTY_CELL = CellType()


class BatchTracer(Tracer):
    """A batch `val`, mapped over axis `dim`."""

    __slots__ = ("_aval", "dim", "val")

    def __init__(self, trace: BatchTrace, val: Any, dim: int):
        self._trace = trace
        self.val = val
        self.dim = dim
        self._aval = None

    @property
    def aval(self):
        found = self._aval
        if found is None:
            found = self._aval = mapped_aval(aval_of(self.val), self.dim)
        return found

    batch_dim = property(lambda self: self.dim)

    def __repr__(self):
        return f"VmapTracer(aval={self.aval.str_short()}, batched={aval_of(self.val).str_short()})"


aval_functions[BatchTracer] = operator.attrgetter("aval")


def mapped_aval(aval, dim: int | None):
    """The type of one element of a batch."""
    if dim is None or not aval.is_array:
        return aval
    return aval.without_axis(dim)


def unmapped_aval(size, dim: int | None, aval):
    """The type of a batch of elements."""
    if dim is None or not aval.is_array:
        return aval
    dim %= len(aval.shape) + 1
    return aval.with_axis(dim, size)


class BatchTrace(Trace):
    """Runs batching rules in the parent trace.

    One `vmap` has one `AxisData` object. A rule that runs a function on batches makes a trace of its own for the same
    object: what the function closes over from the first trace is mapped in the second as well.
    """

    __slots__ = ("axis",)
    sees_constants = False

    def __init__(self, parent: Trace, axis: AxisData):
        self.parent = parent
        self.alive = True
        self.axis = axis

    def process(self, prim, args, params):
        """Run the batching rule where an operand is mapped or the mapped axis is named; else pass the operation on."""
        vals = []
        dims = []
        active = False
        for x in args:
            if type(x) is BatchTracer and (x._trace is self or x._trace.axis is self.axis):
                vals.append(x.val)
                dims.append(x.dim)
                active = True
            else:
                vals.append(x)
                dims.append(None)
        name = self.axis.name
        table = batch_rules if active else None
        if params.get("call_jaxpr", self) is None:  # a function with rules of its own, as it was written
            if name is not None:  # what it does with the axis is not known before it is staged
                return self.process(prim, *staged(args, params))
            if not active and any(self.split(x)[1] is not None for x in held_by(params["rule"])):
                table = batch_rules
        elif name is not None:
            if name in named_axes[prim](params):
                table = axis_rules
            elif not active and holds_axis(prim, params, name):
                table = batch_rules
        saved = current.trace
        current.trace = self.parent
        try:
            if table is None:
                return self.parent.process(prim, args, params)
            out, dim = table[prim](self.axis, vals, dims, **params)
        finally:
            current.trace = saved
        if prim.multiple_results:
            return [x if d is None else BatchTracer(self, x, d) for x, d in zip(out, dim, strict=True)]
        return out if dim is None else BatchTracer(self, out, dim)

    def split(self, x: Any) -> tuple[Any, int | None]:
        """Value and mapped axis of anything."""
        if type(x) is BatchTracer and (x._trace is self or x._trace.axis is self.axis):
            return x.val, x.dim
        return x, None


def held_by(function: Any) -> Iterator[Tracer]:
    """The traced values that a function closes over, itself or by functions and objects that it holds."""
    seen: set[int] = set()
    left = [function]
    while left:
        x = left.pop()
        if isinstance(x, Tracer):
            yield x
            left += [x.val] if type(x) is BatchTracer else []
        elif id(x) not in seen:
            seen.add(id(x))
            if isinstance(x, FunctionType):
                left += [c.cell_contents for c in x.__closure__ or () if c != _EMPTY_CELL]
            elif isinstance(x, MethodType):
                left += [x.__self__, x.__func__]
            elif isinstance(x, functools.partial):
                left += [x.func, *x.args, *x.keywords.values()]
            elif hasattr(x, "functions"):  # a rule
                left += x.functions
            elif not isinstance(x, type | ModuleType):
                left += vars(x).values() if callable(x) and hasattr(x, "__dict__") else _parts(x)


def _parts(x: Any) -> list:
    """The leaves of a container; none of what is a leaf."""
    leaves = pytree.tree_leaves(x)
    return [] if len(leaves) == 1 and leaves[0] is x else leaves


def holds_axis(prim: Primitive, params: dict, name: Any) -> bool:
    """Whether an operation holds a program in which a collective names the axis."""
    return any(name in axes_of(use.program) for use in programs[prim](params))


@checks_leaks
def batch_flat_with_aux(
    fun: Callable, axis: AxisData, vals: Sequence[Any], dims: Sequence[int | None]
) -> tuple[list, list, Any]:
    """Run a function that returns (list of values, anything else) on batches.

    Returns:
      (results, mapped axis of each result or None, what else was returned).
    """
    trace = BatchTrace(current.trace, axis)
    mapped = [d is not None for d in dims]
    put_back = lambda i, x: place(*trace.split(x), dims[i], axis.size)
    with lent(trace, vals, mapped, lambda i, x: BatchTracer(trace, x, dims[i]), put_back) as args, entered(trace):
        if axis.name is None:
            outs, aux = fun(*args)
        else:
            with extend_axes({axis.name: axis.size}):
                outs, aux = fun(*args)
    pairs = [trace.split(x) for x in outs]
    return [x for x, _ in pairs], [d for _, d in pairs], aux


def batch_flat(fun: Callable, axis: AxisData, vals: Sequence[Any], dims: Sequence[int | None]) -> tuple[list, list]:
    """`batch_flat_with_aux` of a function that returns a list of values and nothing else."""
    return batch_flat_with_aux(lambda *xs: (fun(*xs), None), axis, vals, dims)[:2]


def place(x: Any, dim: int | None, to: int | None, size) -> Any:
    """`x`, mapped at `dim`, as mapped at `to` (None: it must not be mapped)."""
    if dim == to:
        return x
    if to is None:
        raise ValueError("a mapped value was given where an unmapped one is needed")
    return to_axis(x, dim, size, to)


def place_all(values: Sequence[Any], dims: Sequence[int | None], to: Sequence[int | None], size) -> list:
    """Several values, each as mapped where `to` says."""
    return [place(x, d, w, size) for x, d, w in zip(values, dims, to, strict=True)]


@cached
def batch_jaxpr(jaxpr: Jaxpr, axis: AxisData, dims: tuple, out: Any = None) -> tuple[Jaxpr, tuple]:
    """The batched program.

    Args:
      dims: mapped axis of each argument, or None.
      out: None to leave results where they fall; True for all results mapped at axis 0; or one
        entry per result: True for mapped at 0, False for wherever it falls.

    Returns:
      (program on batches, mapped axis of each result or None).
    """
    types = [unmapped_aval(axis.size, d, a) for d, a in zip(dims, jaxpr.in_avals, strict=True)]

    def batched(*vals):
        flat = lambda *xs: (eval_jaxpr(jaxpr, jaxpr.consts, *xs), None)
        outs, out_dims, _ = batch_flat_with_aux(flat, axis, vals, dims)
        if out is None:
            return outs, tuple(out_dims)
        wanted = [0 if f else d for d, f in zip(out_dims, itertools.repeat(True) if out is True else out)]
        return place_all(outs, out_dims, wanted, axis.size), tuple(wanted)

    return staging.trace_to_jaxpr(batched, types)
