"""Programs that NumPy evaluates with the bits that every backend gives, or the parts of them.

The column `exact_rules` has the exactness of one operation. A program is exact if all its operations are, and at most
one of them rounds: compilers contract and reorder several, and compute with constants in other ways. Values that an
operation requires to be normal are checked while the program is evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bedrax.core import dtypes
from bedrax.core.facts import cached
from bedrax.core.ir import Eqn, Jaxpr, Literal
from bedrax.core.jitting import jit_p
from bedrax.core.passes import inline
from bedrax.core.staging import program_of
from bedrax.lax import element_types
from bedrax.numpy_backend.host_array import to_numpy
from bedrax.numpy_backend.tables import Exactness, exact_rules, numpy_rules

_DTYPES = frozenset(
    {
        *map(np.dtype, ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
        *map(np.dtype, ("float16", "float32", "float64", "complex64", "complex128")),
        np.dtype(dtypes.bfloat16),
    }
)
_CALLS = frozenset({jit_p})


class Parts(NamedTuple):
    """A program, split by the backend that can evaluate its equations.

    Attributes:
      program: the program on bases, without calls.
      exact: the equations that NumPy evaluates exactly, in their order.
      rest: the others. No equation of `exact` depends on their results.
    """

    program: Jaxpr
    exact: list[Eqn]
    rest: list[Eqn]


@cached
def parts(jaxpr: Jaxpr, largest: int) -> Parts:
    """Split a program.

    Args:
      largest: the size in bytes up to which NumPy makes a value.
    """
    program = _plain(jaxpr)
    levels = [_exactness(eqn, largest) for eqn in program.eqns]
    if None not in levels:
        rounding = [pair for pair in zip(program.eqns, levels, strict=True) if pair[1] >= Exactness.ROUNDED]
        if not rounding or (len(rounding) == 1 and _is_of_arguments(program, *rounding[0])):
            return Parts(program, list(program.eqns), [])
    exact, rest, later = [], [], set()
    for eqn, level in zip(program.eqns, levels, strict=True):
        if level is Exactness.BITS and later.isdisjoint(v for v in eqn.invars if type(v) is not Literal):
            exact.append(eqn)
        else:
            rest.append(eqn)
            later.update(eqn.outvars)
    return Parts(program, exact, rest)


def _plain(jaxpr: Jaxpr) -> Jaxpr:
    """The program without calls, and on bases if it has such a form."""
    program = inline(jaxpr, _CALLS)
    if element_types.meets_extended(program) and element_types.runs_on_bases(program):
        types = [element_types.base_aval(v.aval) for v in program.invars]
        program = inline(program_of(lambda *bases: element_types.run_on_bases(program, *bases), types), _CALLS)
    return program


def _exactness(eqn: Eqn, largest: int) -> Exactness | None:
    if eqn.effects:
        return None
    types = [v.aval for v in eqn.invars]
    for aval in (*types, *[v.aval for v in eqn.outvars]):
        if not aval.is_array or aval.dtype not in _DTYPES or aval.size * aval.dtype.itemsize > largest:
            return None
    rule = exact_rules.find(eqn.primitive)
    return None if rule is None or numpy_rules.kind(eqn.primitive) == "library" else rule(types, **eqn.params)


def _is_of_arguments(program: Jaxpr, rounding: Eqn, level: Exactness) -> bool:
    """Whether no constant takes part in a program in which one operation rounds."""
    if level is Exactness.ALONE:
        return set(rounding.invars) <= set(program.invars)
    constant = program.constvars or any(type(v) is Literal for eqn in program.eqns for v in eqn.invars)
    return not constant and all(eqn.invars for eqn in program.eqns)


class Values(dict[Any, Any]):
    """The NumPy values of variables."""

    def read(self, atom: Any) -> np.ndarray:
        """The value of an operand."""
        return np.asarray(atom.val, atom.aval.dtype) if type(atom) is Literal else self[atom]


def evaluate(found: Parts, operands: Sequence[np.ndarray]) -> Values | None:
    """Return the values of the exact part; None if a value of an operation on normal numbers is not normal."""
    program = found.program
    values = Values(zip(program.invars, operands, strict=True))
    values.update((v, to_numpy(c)[0]) for v, c in zip(program.constvars, program.consts, strict=True))
    with np.errstate(all="ignore"):
        for eqn in found.exact:
            given = [values.read(v) for v in eqn.invars]
            out = numpy_rules[eqn.primitive](*given, **eqn.params)
            out = out if eqn.primitive.multiple_results else [np.asarray(out)]
            level = exact_rules[eqn.primitive]([v.aval for v in eqn.invars], **eqn.params)
            if level is not Exactness.BITS and not all(map(_is_normal, (*given, *out))):
                return None
            values.update(zip(eqn.outvars, out, strict=True))
    return values


_SMALLEST = {dtype: float(dtypes.finfo(dtype).smallest_normal) for dtype in _DTYPES if dtype.kind in "fV"}


def _is_normal(x: np.ndarray) -> bool:
    """Return whether all elements are zero, infinite, or above the smallest normal number.

    A result that is rounded up to the smallest one may have been flushed to zero before it was rounded.
    """
    smallest = _SMALLEST.get(x.dtype)
    if smallest is None:
        return True
    size = np.abs(x if x.dtype.itemsize > 2 else x.astype(np.float32))
    return bool(((size > smallest) | (size == 0)).all())  # neither holds for NaN
