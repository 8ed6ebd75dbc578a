"""Interval arithmetic: bounds of a function's results from bounds of its arguments. (They hold up to rounding.)

A value is a pair (lower, upper) or, if it is known exactly, one array. Most operations are increasing in each operand,
so only a table of exceptions varies by primitive. An operation that holds programs is rebuilt by
`bedrax.core.holders.lift`: the upper bound of a value accompanies the lower one, and the carry of a loop is a pair if a
round makes it one. The index of `cond` and the condition of `while_loop` must be known exactly.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from bedrax import lax, pytree
from bedrax.core.avals import aval_of
from bedrax.core.facts import cached
from bedrax.core.holders import lift
from bedrax.core.ir import Jaxpr, run
from bedrax.core.staging import trace_to_jaxpr
from bedrax.core.tables import with_programs
from bedrax.core.tracing import Trace, Tracer, current, entered, set_trace


class Interval(Tracer):
    """A value between two others."""

    __slots__ = ("lower", "upper")

    def __init__(self, trace: Trace, lower: Any, upper: Any):
        self._trace, self.lower, self.upper = trace, lower, upper

    aval = property(lambda self: aval_of(self.lower))


class IntervalTrace(Trace):
    """Runs the rules below in the parent trace."""

    __slots__ = ()
    sees_constants = False

    def split(self, x: Any) -> tuple[Any, Any]:
        """The bounds of a value; the upper one is None if the value is known exactly."""
        return (x.lower, x.upper) if type(x) is Interval and x._trace is self else (x, None)

    def wrap(self, lower: Any, upper: Any) -> Any:
        """A value with these bounds."""
        return lower if upper is None else Interval(self, lower, upper)

    def process(self, prim, args, params):
        """Bound the results of an operation."""
        pairs = [self.split(x) for x in args]
        lower, upper = [a for a, _ in pairs], [a if b is None else b for a, b in pairs]
        marks = [b is not None for _, b in pairs]
        with set_trace(self.parent):
            if not any(marks):
                return self.parent.process(prim, args, params)
            if with_programs.states(prim):
                low, _, high = lift(prim, params, lower, marks, bounded_program, upper)
                return [self.wrap(*pair) for pair in zip(low, high, strict=True)]
            if str(prim) in RULES:
                return self.wrap(*RULES[str(prim)](lower, upper, **params))
            if str(prim) not in INCREASING:
                raise NotImplementedError(
                    f"there are no bounds of the results of {prim} for operands that are not exact"
                )
            return self.wrap(prim.bind(*lower, **params), prim.bind(*upper, **params))


INCREASING = set(
    """add exp exp2 log log1p expm1 sqrt tanh logistic erf max min floor ceil round sign atan sinh cbrt reduce_sum reduce_max
    reduce_min cumsum cummax cummin convert_element_type broadcast_in_dim reshape transpose slice squeeze rev concatenate pad
    expand_dims copy stop_gradient sort""".split()
)


def _extremes(*candidates: Any) -> tuple[Any, Any]:
    return functools.reduce(lax.min, candidates), functools.reduce(lax.max, candidates)


def _product(low, high):
    return _extremes(*(lax.mul(a, b) for a in (low[0], high[0]) for b in (low[1], high[1])))


def _power(low, high, *, y):
    ends = lax.integer_pow(low[0], y), lax.integer_pow(high[0], y)
    if y < 0:
        raise NotImplementedError("a negative power of an interval, which may contain 0")
    least, most = _extremes(*ends)
    inside = lax.bitwise_and(lax.lt(low[0], lax.full_like(low[0], 0)), lax.gt(high[0], lax.full_like(low[0], 0)))
    return (lax.select(inside, lax.full_like(least, 0), least), most) if y % 2 == 0 else ends


RULES: dict[str, Callable] = {
    "neg": lambda low, high: (lax.neg(high[0]), lax.neg(low[0])),
    "sub": lambda low, high: (lax.sub(low[0], high[1]), lax.sub(high[0], low[1])),
    "mul": _product,
    "integer_pow": _power,
    "square": lambda low, high: _power(low, high, y=2),
}


def _bounded(f: Callable, lower: Sequence[Any], upper: Sequence[Any]) -> list[tuple[Any, Any]]:
    trace = IntervalTrace(current.trace)
    with entered(trace):
        outs = f(*map(trace.wrap, lower, upper))
    return [trace.split(x) for x in outs]


@cached
def bounded_program(program: Jaxpr, marks: tuple, force: tuple | None) -> tuple[Jaxpr, tuple]:
    """``lower bounds, upper bounds of marked arguments -> the same of results``, and the results with an upper
    bound."""

    def flat(*values):
        above = iter(values[len(marks) :])
        upper = [next(above) if m else None for m in marks]
        pairs = _bounded(functools.partial(run, program), values[: len(marks)], upper)
        if force is not None:
            pairs = [(a, a if b is None and f else b) for (a, b), f in zip(pairs, force, strict=True)]
        return [*(a for a, _ in pairs), *(b for _, b in pairs if b is not None)], tuple(
            [b is not None for _, b in pairs]
        )

    types = program.in_avals
    return trace_to_jaxpr(flat, [*types, *(a for a, m in zip(types, marks, strict=True) if m)])


def bounds(f: Callable) -> Callable:
    """Returns a function that bounds the results of `f`.

    Args:
      f: takes arrays and returns a pytree of arrays.

    Returns:
      A function that takes a pair (lower, upper), or an exactly known array, for each argument of `f`. It returns a
      pair of pytrees: the lower and the upper bounds of the results.
    """

    def bounded(*args):
        pairs = [x if isinstance(x, tuple) else (x, None) for x in args]
        trees = []

        def flat(*xs):
            leaves, tree = pytree.tree_flatten(f(*xs))
            trees.append(tree)
            return leaves

        outs = _bounded(flat, [a for a, _ in pairs], [b for _, b in pairs])
        upper = [a if b is None else b for a, b in outs]
        return pytree.tree_unflatten(trees[0], [a for a, _ in outs]), pytree.tree_unflatten(trees[0], upper)

    return bounded
