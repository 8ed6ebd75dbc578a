"""Forward mode: every value travels with its tangent."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from bedrax.autodiff.tables import Zero, jvp_rules
from bedrax.core.avals import aval_functions, aval_of
from bedrax.core.tracing import Trace, Tracer, checks_leaks, current, entered


class DualTracer(Tracer):
    """A primal value that travels with its tangent; its type and its concrete value are the primal's."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: Trace, primal: Any, tangent: Any):
        self.trace = trace
        self.primal = primal
        self.tangent = tangent

    @property
    def aval(self):
        return aval_of(self.primal)

    def concrete(self):
        primal = self.primal
        return primal.concrete() if isinstance(primal, Tracer) else primal


class JVPTracer(DualTracer):
    """A primal value and its tangent (a value or `Zero`)."""

    __slots__ = ()

    def __repr__(self):
        return f"JVPTracer(primal={self.primal!r}, tangent={self.tangent!r})"


aval_functions[JVPTracer] = operator.attrgetter("aval")


class JVPTrace(Trace):
    """Runs jvp rules in the parent trace."""

    __slots__ = ()
    sees_constants = False

    def process(self, prim, args, params):
        primals = []
        tangents = []
        active = False
        for x in args:
            if type(x) is JVPTracer and x.trace is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                active = True
            else:
                primals.append(x)
                tangents.append(Zero.of(x))
        saved = current.trace
        current.trace = self.parent
        try:
            if not active:
                return self.parent.process(prim, args, params)
            out, tangent = jvp_rules[prim](primals, tangents, **params)
        finally:
            current.trace = saved
        if prim.multiple_results:
            return [
                x if type(t) is Zero else JVPTracer(self, x, t) for x, t in zip(out, tangent, strict=True)
            ]
        return out if type(tangent) is Zero else JVPTracer(self, out, tangent)

    def split(self, x: Any) -> tuple[Any, Any]:
        """Primal and tangent of any value."""
        if type(x) is JVPTracer and x.trace is self:
            return x.primal, x.tangent
        return x, Zero.of(x)


@checks_leaks
def jvp_flat(fun: Callable, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
    """Push tangents (values or `Zero`) through a flat function.

    Returns:
      (results, tangents of the results; `Zero` where nothing depends on the inputs' tangents).
    """
    trace = JVPTrace(current.trace)
    inputs = [
        p if type(t) is Zero else JVPTracer(trace, p, t) for p, t in zip(primals, tangents, strict=True)
    ]
    with entered(trace):
        outs = fun(*inputs)
    pairs = [trace.split(x) for x in outs]
    return [p for p, _ in pairs], [t for _, t in pairs]
