"""The operations on references as operations on the value of a reference of the current trace."""

from bedrax import lax
from bedrax.core import executors
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.tracing import current, eval_trace
from bedrax.lax.filling import zeros_of
from bedrax.state import views
from bedrax.state.primitives import (
    _check_value,
    _put,
    addupdate_p,
    check_alive,
    empty_ref_p,
    free_ref_p,
    freeze_p,
    get_p,
    new_ref_p,
    swap_p,
)
from bedrax.state.tables import discharge_rules
from bedrax.state.types import AbstractRef, Cell


@discharge_rules.rule(new_ref_p)
def _new(x, *, memory_space, kind):
    trace = current.trace
    aval = new_ref_p.result_types([aval_of(x)], dict(memory_space=memory_space, kind=kind))
    if trace is eval_trace:  # other users of `x` must not see a write in place
        x = lax.copy_p.bind(x if isinstance(x, Array) else executors.get().asarray(x))
    cell = Cell(aval, x, trace)
    cell._owned = trace is eval_trace
    return cell


def _strong(x):
    aval = aval_of(x)
    return lax.convert_element_type(x, aval.dtype) if aval.weak_type else x


@discharge_rules.rule(empty_ref_p)
def _empty(*, aval, memory_space):
    return Cell(AbstractRef(aval, memory_space), zeros_of(aval), current.trace)


@discharge_rules.rule(get_p)
def _get(ref, *operands, transforms):
    check_alive(ref)
    part = views.read(ref._value, transforms, operands)
    if part is ref._value:  # the whole, or a view that changes nothing
        ref._owned = False
    return part


@discharge_rules.rule(swap_p)
def _swap(ref, value, *operands, transforms):
    check_alive(ref)
    old = ref._value
    part = views.read(old, transforms, operands)
    _check_value("swap", aval_of(part), aval_of(value))
    _put(ref, views.write(old, transforms, operands, _strong(value), "set"))
    return part


@discharge_rules.rule(addupdate_p)
def _addupdate(ref, value, *operands, transforms):
    check_alive(ref)
    _check_value("addupdate", views.part_aval(ref._aval.inner_aval, transforms), aval_of(value))
    _put(ref, views.write(ref._value, transforms, operands, value, "add"))
    return []


@discharge_rules.rule(freeze_p)
def _freeze(ref):
    check_alive(ref)
    if ref._borrowed:
        raise ValueError(
            f"a reference of type {ref._aval.short()} is frozen in a function that got it as an argument: a reference is"
            " frozen where it was made"
        )
    value, ref._value = ref._value, None
    return value


@discharge_rules.rule(free_ref_p)
def _free(ref):
    _freeze(ref)
    return []
