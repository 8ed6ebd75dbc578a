"""The primitives of references, and the treatment of an operation that is bound.

`bind` determines the form of an operation. On a reference of the current trace, it is an operation on the value of the
reference. While a program is recorded, it is an equation. A transformation of a function that uses a reference from
outside passes it on. So a transformation needs no rules for references.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bedrax import lax
from bedrax.core import errors
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.effects import OperandEffect, control_flow_allowed_effects, custom_derivatives_allowed_effects
from bedrax.core.ir import DropVar
from bedrax.core.jitting import jit_p
from bedrax.core.public import public
from bedrax.core.staging import StagingTrace, stage_rules, without_references
from bedrax.core.tables import effect_rules, line_rules, shape_rules
from bedrax.core.tracing import Primitive, Tracer, current, eval_trace, set_trace
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives.conversions import convert_to
from bedrax.state import views
from bedrax.state.tables import discharge_rules
from bedrax.state.types import AbstractRef, Cell, Ref, RefTracer

FAMILY = "references"


class RefEffect(OperandEffect):
    """An effect on a reference, which is an operand of an equation or an argument of a program."""

    __slots__ = ()


class ReadEffect(RefEffect):
    """The reference is read."""

    __slots__ = ()
    writes = False


class WriteEffect(RefEffect):
    """The reference is written to."""

    __slots__ = ()


class AccumEffect(RefEffect):
    """A value is added to the reference."""

    __slots__ = ()


for _set in (control_flow_allowed_effects, custom_derivatives_allowed_effects):
    _set.add_type(RefEffect)


class DischargeTrace(StagingTrace):
    """Records a program in which values replace references."""

    __slots__ = ()

    def process(self, prim: Primitive, args: Any, params: dict[str, Any]) -> Any:
        if prim is jit_p:  # its program may make references, and take none
            params = {**params, "jaxpr": without_references(params["jaxpr"])}
        return super().process(prim, args, params)


def records(trace: Any) -> bool:
    """Whether operations on references become equations of the program that this trace records."""
    return isinstance(trace, StagingTrace) and type(trace) is not DischargeTrace


def _from_the_rule(prim, types, params):
    """The result of the shape rule: the split of an array, and its varying axes, are those of the reference's value."""
    return shape_rules[prim](*types, **params)


class RefPrimitive(Primitive):
    """An operation whose first operand is a reference; see the top of this module."""

    __slots__ = ()
    takes_references = of_references = True
    result_types = _from_the_rule

    def bind(self, *args: Ref | ArrayLike, **params: Any) -> Any:
        """Apply the primitive to a reference and arrays."""
        ref, *operands = args
        trace = current.trace
        if type(ref) is Cell and ref._trace is trace:
            return discharge_rules[self](ref, *operands, **params)
        if type(ref) is Cell:
            check_alive(ref)
        elif not isinstance(ref, RefTracer):
            raise TypeError(f"{self} is an operation on a reference, got {ref!r} of type {type(ref)}")
        if isinstance(trace, StagingTrace):
            return trace.process(self, args, params)
        if trace.parent is None:  # there is no transformation
            raise errors.escaped_tracer_error(ref) if isinstance(ref, RefTracer) else escaped(ref)
        if any(isinstance(x, Tracer) and x._trace is trace for x in operands):
            return _from_inside(self, trace, ref, operands, params)
        with set_trace(trace.parent):
            return self.bind(ref, *operands, **params)


def _from_inside(prim, trace, ref, operands, params):
    """An operation on a reference from outside of a transformation, with operands of the transformation."""
    if prim is get_p:
        with set_trace(trace.parent):
            whole = get_p.bind(ref, transforms=())
        return views.read(whole, params["transforms"], operands)
    raise ValueError(
        f"a value that {type(trace).__name__.removesuffix('Trace').lower()} transforms is written to a reference of type"
        f" {ref.aval.short()} that the transformed function closes over: the reference has no room for it. Pass the"
        " reference as an argument of the function (vmap: with an axis; jvp, vjp: as what is differentiated), or write"
        " a value that is not transformed (lax.stop_gradient)."
    )


def check_alive(ref: Cell) -> None:
    """Raise for a reference that is freed, whose transformation has ended, or that is an argument of a running call."""
    if ref._value is None:
        raise ValueError(
            public(f"a reference of type {ref._aval.short()} is used after jax.freeze or jax.free_ref has ended it")
        )
    if not ref._trace.alive:
        raise escaped(ref)
    if ref._away:
        raise ValueError(
            f"a reference of type {ref._aval.short()} is used while a function has it as an argument: inside, it"
            " has the argument's name only. Use the argument, or do not pass the reference."
        )


def escaped(ref: Cell) -> errors.UnexpectedTracerError:
    """The error of a reference that has left the transformation in which it was made."""
    return errors.UnexpectedTracerError(
        f"a reference of type {ref._aval.short()} is used outside of the transformed function that made it. Return what"
        " it holds (ref[...]), not the reference."
    )


get_p: Final = RefPrimitive("get", FAMILY)
swap_p: Final = RefPrimitive("swap", FAMILY)
addupdate_p: Final = RefPrimitive("addupdate", FAMILY, multiple_results=True)
freeze_p: Final = RefPrimitive("freeze", FAMILY)
free_ref_p: Final = RefPrimitive("free_ref", FAMILY, multiple_results=True)


class NewRef(Primitive):
    """The operation that makes a reference."""

    __slots__ = ()
    of_references = True
    result_types = _from_the_rule

    def bind(self, *args: ArrayLike, **params: Any) -> Ref | Array:
        """Make a reference, which belongs to the current trace."""
        trace = current.trace
        if records(trace):
            return trace.process(self, args, params)
        return discharge_rules[self](*args, **params)


new_ref_p: Final = NewRef("new_ref", FAMILY)
empty_ref_p: Final = NewRef("empty_ref", FAMILY)


@stage_rules.rule(new_ref_p, empty_ref_p)
def _stage_new(trace, prim, args, params):
    made = trace.record(prim, args, params)
    return RefTracer(trace, made.aval, made.variable, made.source_info)


# ---- types


def _inner(ref: Any) -> ShapedArray:
    if not isinstance(ref, AbstractRef):
        raise TypeError(f"an operation on references got {ref}, which is not a reference")
    return ref.inner_aval


@new_ref_p.abstract
def _new_types(x, *, memory_space, kind):
    if not x.is_array:
        raise TypeError(f"a reference holds an array; there are none to values of type {x.short()}")
    return AbstractRef(x, memory_space, kind)


@empty_ref_p.abstract
def _empty_types(*, aval, memory_space):
    return AbstractRef(aval, memory_space)


@get_p.abstract
def _get_types(ref, *operands, transforms):
    return views.part_aval(_inner(ref), transforms)


@swap_p.abstract
def _swap_types(ref, value, *operands, transforms):
    part = views.part_aval(_inner(ref), transforms)
    _check_value("swap", part, value)
    return part


@addupdate_p.abstract
def _addupdate_types(ref, value, *operands, transforms):
    _check_value("addupdate", views.part_aval(_inner(ref), transforms), value)
    return []


freeze_p.abstract(_inner)
free_ref_p.abstract(lambda ref: [])


def _check_value(what: str, part: ShapedArray, value: Any) -> None:
    if value.shape != part.shape:
        raise ValueError(
            public(
                f"{what}: a value of shape {value.shape} is written to a part of a reference of shape {part.shape};"
                " they are equal. jnp.broadcast_to gives a value another shape."
            )
        )
    if value.dtype != part.dtype:
        raise ValueError(
            f"{what}: a value of dtype {value.dtype} is written to a reference to {part.dtype}; they are equal. Convert"
            f" the value: x.astype({part.dtype})."
        )


# ---- effects

effect_rules.add(get_p, lambda *_, **params: {ReadEffect(0)})
effect_rules.add(swap_p, lambda *_, **params: {WriteEffect(0)})
effect_rules.add(addupdate_p, lambda *_, **params: {AccumEffect(0)})
for _prim in (freeze_p, free_ref_p):
    effect_rules.add(_prim, lambda *_, **params: {WriteEffect(0)})


# ---- printing as statements


@line_rules.rule(get_p)
def _print_get(eqn, name):
    ref, *operands = eqn.invars
    return f"{name(eqn.outvars[0])} <- {_place(name(ref), eqn, operands, name)}"


@line_rules.rule(swap_p)
def _print_swap(eqn, name):
    ref, value, *operands = eqn.invars
    place, out = _place(name(ref), eqn, operands, name), eqn.outvars[0]
    return f"{place} <- {name(value)}" if type(out) is DropVar else f"{name(out)}, {place} <- {place}, {name(value)}"


@line_rules.rule(addupdate_p)
def _print_addupdate(eqn, name):
    ref, value, *operands = eqn.invars
    return f"{_place(name(ref), eqn, operands, name)} += {name(value)}"


def _place(ref: str, eqn, operands, name) -> str:
    return views.text(ref, eqn.params["transforms"], [name(v) for v in operands])


# ---- operations on the value of a reference of the current trace


def read_whole(ref: Ref) -> Any:
    """The whole value of a reference. The caller may keep it, so the buffer is no longer the reference's alone."""
    if type(ref) is Cell and ref._trace is current.trace:
        check_alive(ref)
        ref._owned = False
        return ref._value
    if isinstance(ref, views.TransformedRef):
        return get_p.bind(ref.ref, *ref.operands, transforms=ref.transforms)
    return get_p.bind(ref, transforms=())


def write_whole(ref: Ref, value: Any, owned: bool = False) -> None:
    """Replace the whole value of a reference.

    Args:
      owned: whether no other object has the value.
    """
    if type(ref) is Cell and ref._trace is current.trace:
        check_alive(ref)
        _put(ref, value)
        ref._owned = owned
    elif isinstance(ref, views.TransformedRef):
        swap_p.bind(ref.ref, value, *ref.operands, transforms=ref.transforms)
    else:
        swap_p.bind(ref, value, transforms=())


def _put(cell: Cell, value: Any) -> None:
    if isinstance(value, np.ndarray) or (isinstance(value, np.generic) and cell._trace is eval_trace):
        value = lax.asarray(value)  # a copy of the dtype of the reference: users may write to their array later
    weak = cell._aval.inner_aval.weak_type  # does not change with the written value
    if aval_of(value).weak_type != weak:
        value = convert_to(value, aval_of(value).dtype, weak)
    cell._value, cell._written, cell._owned = value, True, False
