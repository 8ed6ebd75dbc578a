"""Forward mode: every value is paired with its tangent."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from bedrax.autodiff.tables import Zero, flags, instantiate, jvp_rules, live, spread
from bedrax.core import staging
from bedrax.core.array import no_arrays
from bedrax.core.avals import ShapedArray, aval_functions, aval_of
from bedrax.core.dead_code import kept
from bedrax.core.facts import cached
from bedrax.core.ir import Jaxpr, eval_jaxpr
from bedrax.core.names import Transform
from bedrax.core.tracing import Primitive, Trace, Tracer, checks_leaks, current, entered, inputs_of
from bedrax.core.typed_values import is_typed, typed
from bedrax.core.typing import ArrayLike


class DualTracer(Tracer):
    """A primal value paired with its tangent; its type and its concrete value are the primal's."""

    __slots__ = ("primal", "tangent")

    @property
    def inner(self) -> Any:
        return self.primal

    def __init__(self, trace: Trace, primal: Any, tangent: Any) -> None:
        self._trace = trace
        self.primal: Any = primal
        self.tangent: Any = tangent

    @property
    def aval(self) -> ShapedArray:
        return aval_of(self.primal)

    def concrete(self) -> float:
        primal = self.primal
        return primal.concrete() if isinstance(primal, Tracer) else primal


class JVPTracer(DualTracer):
    """A primal value and its tangent (a value or `Zero`).

    Examples:

      >>> from jax.interpreters import ad

      >>> def f(x):
      ...     print(type(x) is ad.JVPTracer, x.primal, x.tangent)
      ...     return x * x
      ...
      >>> _ = jax.jvp(f, (3.,), (10.,))
      True 3.0 10.0
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"JVPTracer(primal={self.primal!r}, tangent={self.tangent!r})"


aval_functions[JVPTracer] = operator.attrgetter("aval")
JVPValue: Final = typed(JVPTracer)


def dual(trace: Trace, primal: Any, tangent: Any) -> JVPTracer:
    """The tracer of a primal value with a tangent."""
    if type(primal) in no_arrays and is_typed(primal):  # the first test is quick, and false for arrays
        return JVPValue(trace, primal, tangent)
    return JVPTracer(trace, primal, tangent)


class Differentiating(Trace):
    """Base of the traces that run derivative rules.

    Attributes:
      home: the trace that is current while a rule runs.
    """

    __slots__ = ()
    sees_constants = False

    def call(self, prim: Primitive, rule: Any, args: Any) -> Any:
        """Run the derivative rule of a function if an argument has a tangent; else the parent processes the call.

        The function itself does not run here, so that it may read concrete values of its arguments.
        """
        primals = []
        tangents = []
        active = False
        for x in args:
            mine = getattr(x, "_trace", None) is self
            if mine and isinstance(x, DualTracer):
                primals.append(x.primal)
                tangents.append(x.tangent)
                active = True
            elif mine:  # a reference to values that this trace follows: the program is read without references
                return super().call(prim, rule, args)
            else:
                primals.append(x)
                tangents.append(Zero(None, x))
        if active and rule.optimize_remat:  # the program replaces the rule where the rule is not needed
            return super().call(prim, rule, args)
        saved = current.trace
        try:
            if not active:
                current.trace = self.parent
                return self.parent.call(prim, rule, args)
            current.trace = self.home
            out, moved = jvp_rules[prim](primals, tangents, rule=rule)
        finally:
            current.trace = saved
        return [self.pair(x, t) for x, t in zip(out, moved, strict=True)]


class JVPTrace(Differentiating):
    """Runs jvp rules in the parent trace.

    Examples:

      >>> from jax.interpreters import ad

      >>> seen = []
      >>> def f(x):
      ...     seen.append(x)
      ...     return x * x
      ...
      >>> _ = jax.jvp(f, (3.,), (10.,))
      >>> trace = seen[0]._trace
      >>> isinstance(trace, ad.JVPTrace), trace.split(5.)
      (True, (5.0, Zero(f32[])))
    """

    __slots__ = ()

    @property
    def home(self) -> Any:
        return self.parent

    def process(self, prim: Primitive, args: tuple[ArrayLike, ...] | list[Any], params: dict[str, Any]) -> Any:
        """Run the primitive's jvp rule where an operand has a tangent; else pass the operation on."""
        primals = []
        tangents = []
        active = False
        for x in args:
            if (type(x) is JVPTracer or type(x) is JVPValue) and x._trace is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                active = True
            else:
                primals.append(x)
                tangents.append(Zero(None, x))
        saved = current.trace
        current.trace = self.parent
        try:
            if not active:
                return self.parent.process(prim, args, params)
            out, tangent = jvp_rules[prim](primals, tangents, **params)
        finally:
            current.trace = saved
        if prim.multiple_results:
            return [x if type(t) is Zero else dual(self, x, t) for x, t in zip(out, tangent, strict=True)]
        return out if type(tangent) is Zero else dual(self, out, tangent)

    def pair(self, primal: Any, tangent: Any) -> Any:
        """A tracer for a result."""
        return primal if type(tangent) is Zero else dual(self, primal, tangent)

    def split(self, x: Any) -> tuple[Any, Any]:
        """Primal and tangent of any value."""
        if (type(x) is JVPTracer or type(x) is JVPValue) and x._trace is self:
            return x.primal, x.tangent
        return x, Zero.of(x)


@checks_leaks
def jvp_flat_with_aux(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], transform: Transform | None = None
) -> tuple[list[Any], list[Any], Any]:
    """Push tangents (values or `Zero`) through a function that returns (list of values, anything else).

    Args:
      transform: among the names in force while the function runs.

    Returns:
      (results, tangents of the results; `Zero` if they do not depend on the inputs' tangents, the other return value).
    """
    trace = JVPTrace(current.trace)
    names = None if transform is None else (*current.names, transform)

    def paired(i, x):
        t = tangents[i]
        return dual(trace, x, t[...] if aval_of(t).mutable else t)  # the tangent of a reference is a reference

    def put_back(i, x):
        primal, tangent = trace.split(x)
        tangents[i][...] = instantiate(tangent)
        return primal

    moves = [type(t) is not Zero for t in tangents]
    with inputs_of(trace, primals, moves, paired, put_back) as inputs, entered(trace, names):
        outs, aux = fun(*inputs)
    pairs = [trace.split(x) for x in outs]
    return [p for p, _ in pairs], [t for _, t in pairs], aux


def jvp_flat(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """`jvp_flat_with_aux` of a function that returns a list of values and nothing else."""
    return jvp_flat_with_aux(lambda *xs: (fun(*xs), None), primals, tangents)[:2]


def jvp_program(program: Jaxpr, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Push tangents (values or `Zero`) through a program."""
    flat = lambda *xs: (eval_jaxpr(program, program.consts, *xs), None)
    return jvp_flat_with_aux(flat, primals, tangents)[:2]


@cached
def jvp_jaxpr(
    jaxpr: Jaxpr, active: tuple[bool, ...], instantiate_out: tuple[bool, ...] | None = None
) -> tuple[Jaxpr, tuple[Any, ...]]:
    """The program ``args, tangents of the active args -> results, tangents of the active results``.

    Args:
      instantiate_out: which results get a tangent even if it is zero.

    Returns:
      (program, which results have a tangent).
    """
    tangent_types = [a.to_tangent_aval() for a in kept(jaxpr.in_avals, active)]

    def pushed(*values):
        primals = values[: len(active)]
        outs, moved = jvp_program(jaxpr, primals, spread(values[len(active) :], active, primals))
        if instantiate_out is not None:
            moved = [instantiate(t) if w else t for t, w in zip(moved, instantiate_out, strict=True)]
        return [*outs, *live(moved)], flags(moved)

    program, active_out = staging.trace_to_jaxpr(pushed, [*jaxpr.in_avals, *tangent_types])
    return staging.without_references(program), active_out
