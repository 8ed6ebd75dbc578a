"""Arrays with elements of several numbers each: the effect of an operation on their *bases*.

An array of an `ExtendedDType` (PRNG keys) of shape ``s`` is represented by its base, an array of numbers of shape
``(*s, *dtype.element_shape)``. Programs contain the array; evaluation and lowering work on bases:

- an operation that calls programs, or that its package defined on bases, takes bases unchanged;
- any other operation moves elements and does not read them (slice, gather, select, ...). Its effect on bases equals
  its effect on a batch of arrays of numbers: its batching rule with the trailing axes mapped. The batching package
  offers that (`bedrax.core.offers`), for the purpose "operations on bases".
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from bedrax.core import dtypes, offers
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray
from bedrax.core.facts import cached
from bedrax.core.ir import Jaxpr, Literal, run
from bedrax.core.tables import families_on_bases, programs
from bedrax.lax.tables import decompositions

if TYPE_CHECKING:
    from bedrax.core.tracing import Primitive


def is_extended(aval: ShapedArray) -> bool:
    """Whether a type's elements are several numbers each."""
    return aval.is_array and isinstance(aval.dtype, dtypes.ExtendedDType)


def base_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the base of an array of type `aval`; itself if its elements are numbers."""
    if not is_extended(aval):
        return aval
    dtype, split = aval.dtype, aval.split
    for d in range(len(dtype.element_shape)) if split is not None else ():
        split = split.with_dimension(len(aval.shape) + d, ())
    return ShapedArray((*aval.shape, *dtype.element_shape), np.dtype(dtype.element_dtype), sharding=split, vma=aval.vma)


def moves_elements(prim: Primitive, avals_in: list[ShapedArray], avals_out: list[ShapedArray]) -> bool:
    """Whether this operation on arrays of these types goes through its batching rule."""
    return (
        prim.family not in families_on_bases
        and (any(map(is_extended, avals_in)) or any(map(is_extended, avals_out)))
        and not programs.states(prim)
    )


def function_on_bases(prim: Primitive, avals: list[ShapedArray], params: dict[str, Any]) -> Callable[..., Any]:
    """The function of bases that implements an operation on arrays of these types. It is traceable and returns one value
    or a list."""
    on_bases = offers.offered("operations on bases")
    if on_bases is None:
        raise NotImplementedError(f"'{prim}' of {[str(a) for a in avals]} maps with vmap: install bedrax-batching")
    return on_bases(prim, avals, params)


_operands, _results = operator.attrgetter("invars"), operator.attrgetter("outvars")


@cached
def meets_extended(jaxpr: Jaxpr) -> bool:
    """Whether an equation of a program (not of those inside it) takes or returns an array of an extended dtype."""
    eqns = jaxpr.eqns
    atoms = set(chain(chain.from_iterable(map(_operands, eqns)), chain.from_iterable(map(_results, eqns))))
    met = {v.aval.dtype for v in atoms if v.aval.is_array}
    return any(isinstance(dtype, dtypes.ExtendedDType) for dtype in met)


@cached
def eqns_that_move_elements(jaxpr: Jaxpr) -> frozenset[Any]:
    """The equations of a program (not of those inside it) that `function_on_bases` implements."""
    if not meets_extended(jaxpr):
        return frozenset()
    return frozenset(
        eqn
        for eqn in jaxpr.eqns
        if moves_elements(eqn.primitive, [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars])
    )


def runs_on_bases(jaxpr: Jaxpr) -> bool:
    """Whether each operation on arrays of an extended dtype moves elements, holds programs, or is defined on bases."""
    moving = eqns_that_move_elements(jaxpr)
    return all(
        eqn in moving
        or programs.states(eqn.primitive)
        or decompositions.states(eqn.primitive)
        or not any(is_extended(v.aval) for v in (*eqn.invars, *eqn.outvars))
        for eqn in jaxpr.eqns
    )


def run_on_bases(jaxpr: Jaxpr, *args: Array) -> list[Any]:
    """The results of a program, under the current trace, with bases in place of arrays of an extended dtype."""
    if not meets_extended(jaxpr):
        return run(jaxpr, *args)
    moving = eqns_that_move_elements(jaxpr)
    base = lambda v, x: v.aval.dtype.physical_value(x) if is_extended(v.aval) else x
    env = {v: base(v, c) for v, c in zip(jaxpr.constvars, jaxpr.consts, strict=True)}
    env |= zip(jaxpr.invars, args, strict=True)
    value = lambda v: v.val if type(v) is Literal else env[v]
    for eqn in jaxpr.eqns:
        prim = eqn.primitive
        fun = functools.partial(prim.bind, **eqn.params)
        if eqn in moving:
            fun = function_on_bases(prim, [v.aval for v in eqn.invars], eqn.params)
        elif not programs.states(prim) and any(is_extended(v.aval) for v in (*eqn.invars, *eqn.outvars)):
            if decompositions.states(prim):  # its package defined it on bases
                fun = functools.partial(decompositions[prim], **eqn.params)
        out = fun(*map(value, eqn.invars))
        env |= zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True)
    return [value(v) for v in jaxpr.outvars]
