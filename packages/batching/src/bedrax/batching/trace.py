"""Batching: reading a program as the same program on a batch.

A `BatchTracer` is a value with a mapped axis; its aval is that of one element. Rules run
in the parent trace on whole batches.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from bedrax.batching.tables import AxisData, batch_rules, to_axis
from bedrax.core import staging
from bedrax.core.avals import ShapedArray, aval_functions, aval_of
from bedrax.core.columns import Column
from bedrax.core.facts import cached
from bedrax.core.ir import Jaxpr, call_flat
from bedrax.core.passes import axes_of
from bedrax.core.tables import named_axes, programs
from bedrax.core.tracing import Primitive, Trace, Tracer, checks_leaks, current, entered, extend_axes
from bedrax.lax.axes import insert

# Collectives that name the mapped axis turn into operations on it; see rules/collectives.py.
axis_rules = Column("batching over the named axis", "bedrax.batching.rules")


class BatchTracer(Tracer):
    """A batch `val`, mapped over axis `dim`."""

    __slots__ = ("_aval", "dim", "val")

    def __init__(self, trace: BatchTrace, val: Any, dim: int):
        self.trace = trace
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
    return ShapedArray(aval.shape[:dim] + aval.shape[dim + 1 :], aval.dtype, aval.weak_type)


def unmapped_aval(size, dim: int | None, aval):
    """The type of a batch of elements."""
    if dim is None or not aval.is_array:
        return aval
    dim %= len(aval.shape) + 1
    return ShapedArray(insert(aval.shape, dim, size), aval.dtype, aval.weak_type)


class BatchTrace(Trace):
    """Runs batching rules in the parent trace."""

    __slots__ = ("axis",)
    sees_constants = False

    def __init__(self, parent: Trace, axis: AxisData):
        self.parent = parent
        self.alive = True
        self.axis = axis

    def process(self, prim, args, params):
        vals = []
        dims = []
        active = False
        for x in args:
            if type(x) is BatchTracer and x.trace is self:
                vals.append(x.val)
                dims.append(x.dim)
                active = True
            else:
                vals.append(x)
                dims.append(None)
        rule = None
        name = self.axis.name
        if name is not None and name in named_axes[prim](params):
            rule = axis_rules[prim]
        saved = current.trace
        current.trace = self.parent
        try:
            if rule is None:
                if not active and not (name is not None and holds_axis(prim, args, params, name)):
                    return self.parent.process(prim, args, params)
                rule = batch_rules[prim]
            out, dim = rule(self.axis, vals, dims, **params)
        finally:
            current.trace = saved
        if prim.multiple_results:
            return [x if d is None else BatchTracer(self, x, d) for x, d in zip(out, dim, strict=True)]
        return out if dim is None else BatchTracer(self, out, dim)

    def split(self, x: Any) -> tuple[Any, int | None]:
        """Value and mapped axis of anything."""
        if type(x) is BatchTracer and x.trace is self:
            return x.val, x.dim
        return x, None


def holds_axis(prim: Primitive, args: Sequence[Any], params: dict, name: Any) -> bool:
    """Whether an operation holds a program in which a collective names the axis."""
    fun = params.get("call_jaxpr")
    if fun is not None and type(fun) is not Jaxpr:  # not staged yet
        return name in axes_of(staging.program_of(fun, [aval_of(x) for x in args]))
    return any(name in axes_of(use.program) for use in programs[prim](params))


@checks_leaks
def batch_flat(
    fun: Callable, axis: AxisData, vals: Sequence[Any], dims: Sequence[int | None]
) -> tuple[list, list]:
    """Run a flat function on batches.

    Returns:
      (results, mapped axis of each result or None).
    """
    trace = BatchTrace(current.trace, axis)
    args = [x if d is None else BatchTracer(trace, x, d) for x, d in zip(vals, dims, strict=True)]
    with entered(trace):
        if axis.name is None:
            outs = fun(*args)
        else:
            with extend_axes({axis.name: axis.size}):
                outs = fun(*args)
    pairs = [trace.split(x) for x in outs]
    return [x for x, _ in pairs], [d for _, d in pairs]


def place(x: Any, dim: int | None, to: int | None, size) -> Any:
    """`x`, mapped at `dim`, as mapped at `to` (None: it must not be mapped)."""
    if dim == to:
        return x
    if to is None:
        raise ValueError("a mapped value was given where an unmapped one is needed")
    return to_axis(x, dim, size, to)


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
        outs, out_dims = batch_flat(lambda *xs: call_flat(jaxpr, xs), axis, vals, dims)
        if out is not None:
            force = (True,) * len(outs) if out is True else out
            outs = [
                place(x, d, 0, axis.size) if f else x for x, d, f in zip(outs, out_dims, force, strict=True)
            ]
            out_dims = [0 if f else d for d, f in zip(out_dims, force, strict=True)]
        return outs, tuple(out_dims)

    return staging.trace_to_jaxpr(batched, types)
