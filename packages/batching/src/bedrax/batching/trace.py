"""Batching: the same program, run on a batch.

A `BatchTracer` is a value with a mapped axis; its aval is that of one element. Rules run
in the parent trace on whole batches.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from bedrax.batching.tables import AxisData, batch_rules, to_axis
from bedrax.core import staging
from bedrax.core.array import no_arrays
from bedrax.core.avals import AbstractToken, ShapedArray, aval_functions, aval_of
from bedrax.core.columns import Column
from bedrax.core.composites import name_batched
from bedrax.core.facts import cached
from bedrax.core.ir import Jaxpr, eval_jaxpr
from bedrax.core.names import Transform
from bedrax.core.objects import MappingSpec
from bedrax.core.passes import axes_of
from bedrax.core.tables import named_axes, programs
from bedrax.core.tracing import (
    Primitive,
    Trace,
    Tracer,
    checks_leaks,
    current,
    entered,
    extend_axes,
    inputs_of,
    pvary_p,
    set_trace,
)
from bedrax.core.typed_values import is_typed, typed
from bedrax.core.typing import ArrayLike

# Collectives that name the mapped axis turn into operations on it; see rules/collectives.py.
axis_rules: Final = Column(
    "batching over the named axis",
    "bedrax.batching.rules",
    signature="rule(axis, args, dims, **params) -> (out, out_dim)",
)


class BatchTracer(Tracer):
    """A batch `val`, mapped over axis `dim`."""

    __slots__ = ("_aval", "dim", "val")

    @property
    def inner(self) -> Any:
        return self.val

    def __init__(self, trace: BatchTrace, val: Any, dim: int) -> None:
        self._trace = trace
        self.val: Any = val
        self.dim: int = dim
        self._aval = None

    @property
    def aval(self) -> ShapedArray:
        found = self._aval
        if found is None:
            batch = aval_of(self.val)
            found = batch.without_axis(self.dim) if batch.is_array else self._element_of(batch)
            self._aval = found
        return found

    def _element_of(self, batch: Any) -> Any:
        return mapped_aval(batch, self.dim, self._trace.axis.size)

    @property
    def batch_dim(self) -> Any:
        return self.dim

    def __repr__(self) -> str:
        return f"VmapTracer(aval={self.aval.str_short()}, batched={aval_of(self.val).str_short()})"


aval_functions[BatchTracer] = operator.attrgetter("aval")
BatchValue: Final = typed(BatchTracer)


def batched(trace: BatchTrace, val: Any, dim: Any) -> BatchTracer:
    """The tracer of a batch."""
    if type(val) in no_arrays and is_typed(val):  # the first test is quick, and false for arrays
        return BatchValue(trace, val, dim)
    return BatchTracer(trace, val, dim)


def mapped_aval(aval: Any, dim: Any, size: Any = None) -> Any:
    """The type of one element of a batch. `dim` is a `MappingSpec` for a type of a library, which needs the size."""
    if dim is None or not aval.is_array:
        return aval if dim is None or not aval.represented else _ranked(aval, "dec_rank", size, dim)
    return aval.without_axis(dim)


def _ranked(aval: Any, method: str, size: Any, spec: Any) -> Any:
    own = getattr(type(aval), method, None)
    if own is None or not isinstance(spec, MappingSpec):
        raise TypeError(
            f"values of type {aval} are mapped by a MappingSpec, for which the class {type(aval).__name__} must define"
            f" `dec_rank` and `inc_rank`; got {spec!r}"
        )
    return own(aval, size, spec)


def unmapped_aval(size: int, dim: Any, aval: Any) -> Any:
    """The type of a batch of elements."""
    if dim is None or not aval.is_array:
        return aval if dim is None or not aval.represented else _ranked(aval, "inc_rank", size, dim)
    dim %= len(aval.shape) + 1
    return aval.with_axis(dim, size)


def _batch_type(axis: AxisData, dim: int | None, aval: AbstractToken | ShapedArray) -> AbstractToken | ShapedArray:
    """The type of a batch of elements, which is split, and varies, as the mapped axis does."""
    batch = unmapped_aval(axis.size, dim, aval)
    if axis.varying and aval.is_array:
        batch = batch.update(vma=batch.vma | axis.varying)
    if axis.split is None or dim is None or not aval.is_array:
        return batch
    split = axis.split.update(spec=axis.split.spec.update((None,) * aval.ndim)) if aval.split is None else aval.split
    axes = axis.split.spec[0]
    taken = {a for entry in split.spec for a in (entry if isinstance(entry, tuple) else (entry,))}
    if split.mesh != axis.split.mesh or not taken.isdisjoint(axes if isinstance(axes, tuple) else (axes,)):
        return batch
    return batch.update(sharding=split.with_dimension(dim % batch.ndim, axes))


class BatchTrace(Trace):
    """Runs batching rules in the parent trace.

    One `vmap` has one `AxisData` object. A rule that runs a function on batches makes a trace of its own for the same
    object: the values that the function closes over from the first trace are mapped in the second as well.
    """

    __slots__ = ("axis",)
    sees_constants = False

    def __init__(self, parent: Trace, axis: AxisData) -> None:
        self.parent: Trace = parent
        self.alive = True
        self.axis: AxisData = axis

    def process(self, prim: Primitive, args: list[ArrayLike] | tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Run the batching rule where an operand is mapped or the mapped axis is named; else pass the operation on."""
        vals = []
        dims = []
        active = False
        for x in args:
            if (type(x) is BatchTracer or type(x) is BatchValue) and (x._trace is self or x._trace.axis is self.axis):
                vals.append(x.val)
                dims.append(x.dim)
                active = True
            else:
                vals.append(x)
                dims.append(None)
        name = self.axis.name
        table = batch_rules if active else None
        if name is not None:
            if name in named_axes[prim](params):
                table = axis_rules
            elif not active and holds_axis(prim, params, name):
                table = batch_rules
        if table is None and self.axis.varying and programs[prim](params):
            table = batch_rules  # the types in its programs do not have these axes
        saved = current.trace
        current.trace = self.parent
        try:
            if table is None:
                return self.parent.process(prim, args, params)
            out, dim = table[prim](self.axis, vals, dims, **params)
        finally:
            current.trace = saved
        if prim.multiple_results:
            return [x if d is None else batched(self, x, d) for x, d in zip(out, dim, strict=True)]
        return out if dim is None else batched(self, out, dim)

    @property
    def evaluates(self) -> Any:
        return self.axis.name is None and self.parent.evaluates

    def call(self, prim: Primitive, rule: Any, args: Any) -> Any:
        """Apply a function with rules to batches.

        If no trace around this one differentiates or records the function, it runs as it is written. Otherwise those
        traces see the function and its rules on batches. If no argument is mapped, a value that it closes over may be
        mapped; if the axis has a name, its results depend on its collectives. Both are found in its program.
        """
        if self.evaluates:
            return rule.primal(*args)
        pairs = [self.split(x) for x in args]
        if self.axis.name is not None or all(d is None for _, d in pairs):
            return super().call(prim, rule, args)
        with set_trace(self.parent):
            out, dims = batch_rules[prim](self.axis, [x for x, _ in pairs], [d for _, d in pairs], rule=rule)
        return [batched(self, x, d) for x, d in zip(out, dims, strict=True)]

    def split(self, x: Any) -> tuple[Any, int | None]:
        """The value and the mapped axis (None if it is not mapped) of any value or tracer."""
        if (type(x) is BatchTracer or type(x) is BatchValue) and (x._trace is self or x._trace.axis is self.axis):
            return x.val, x.dim
        return x, None


def holds_axis(prim: Primitive, params: dict[str, Any], name: Any) -> bool:
    """Whether an operation holds a program in which a collective names the axis."""
    return any(name in axes_of(use.program) for use in programs[prim](params))


@checks_leaks
def batch_flat_with_aux(
    fun: Callable[..., Any],
    axis: AxisData,
    vals: Sequence[Any],
    dims: Sequence[int | None],
    transform: Transform | None = None,
) -> tuple[list[Any], list[Any], Any]:
    """Run a function that returns (list of values, anything else) on batches.

    Args:
      transform: among the names in force while the function runs.

    Returns:
      (results, mapped axis of each result or None, the other return value).
    """
    trace = BatchTrace(current.trace, axis)
    names = None if transform is None else (*current.names, transform)
    mapped = [d is not None for d in dims]
    put_back = lambda i, x: place(*trace.split(x), dims[i], axis.size)
    with (
        inputs_of(trace, vals, mapped, lambda i, x: batched(trace, x, dims[i]), put_back) as args,
        entered(trace, names),
    ):
        if axis.name is None:
            outs, aux = fun(*args)
        else:
            with extend_axes({axis.name: axis.size}):
                outs, aux = fun(*args)
    pairs = [trace.split(x) for x in outs]
    return [x for x, _ in pairs], [d for _, d in pairs], aux


def batch_flat(
    fun: Callable[..., Any], axis: AxisData, vals: Sequence[Any], dims: Sequence[int | None]
) -> tuple[list[Any], list[Any]]:
    """`batch_flat_with_aux` of a function that returns a list of values and nothing else."""
    return batch_flat_with_aux(lambda *xs: (fun(*xs), None), axis, vals, dims)[:2]


def _is_moved_value(x: Any, dim: Any, to: Any) -> bool:
    return isinstance(dim, MappingSpec) or isinstance(to, MappingSpec) or (to is not None and aval_of(x).represented)


def place(x: Any, dim: int | None, to: int | None, size: int) -> Any:
    """`x`, mapped at `dim`, as mapped at `to` (None: it must not be mapped)."""
    if dim == to:
        return x
    if (type(dim) is not int or type(to) is not int) and _is_moved_value(x, dim, to):
        raise ValueError(
            f"a value of type {aval_of(x)} that is mapped by {dim!r} was given where one that is mapped by {to!r} is"
            " needed; values of libraries' types are not moved, and not repeated"
        )
    if to is None:
        raise ValueError(
            f"a value of shape {aval_of(x).shape} that is mapped over axis {dim} was given where a value that is not mapped is"
            " needed"
        )
    return to_axis(x, dim, size, to)


def place_all(values: Sequence[Any], dims: Sequence[int | None], to: Sequence[int | None], size: int) -> list[Any]:
    """Several values, each mapped at its entry of `to`."""
    return [place(x, d, w, size) for x, d, w in zip(values, dims, to, strict=True)]


@cached
def batch_jaxpr(jaxpr: Jaxpr, axis: AxisData, dims: tuple[Any, ...], out: Any = None) -> tuple[Jaxpr, tuple[Any, ...]]:
    """The batched program.

    Args:
      dims: mapped axis of each argument, or None.
      out: None to keep the mapped axes that the rules choose; True for all results mapped at axis 0; or one
        entry per result: True for mapped at 0, False for any axis.

    Returns:
      (program on batches, mapped axis of each result or None).
    """
    types = [_batch_type(axis, d, a) for d, a in zip(dims, jaxpr.in_avals, strict=True)]

    def batched(*vals):
        flat = lambda *xs: (eval_jaxpr(jaxpr, jaxpr.consts, *xs), None)
        outs, out_dims, _ = batch_flat_with_aux(flat, axis, vals, dims)
        if axis.varying:
            outs = [pvary_p.bind(x, axes=axis.varying) if aval_of(x).is_array else x for x in outs]
        if out is None:
            return outs, tuple(out_dims)
        wanted = [0 if f else d for d, f in zip(out_dims, itertools.repeat(True) if out is True else out)]
        return place_all(outs, out_dims, wanted, axis.size), tuple(wanted)

    program, out_dims = staging.trace_to_jaxpr(batched, types)
    name_batched(jaxpr, program, dims, out_dims)
    return program, out_dims
