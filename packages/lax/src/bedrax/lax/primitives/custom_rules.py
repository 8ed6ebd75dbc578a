"""Primitives of functions with custom rules, for differentiation and transposition.

The classes that users see (`custom_jvp`, `custom_vjp`) live in `bedrax.autodiff`. The parameter `rule` of their
primitives is data with the methods ``primal(*args)`` and ``jvp(primals, tangents)`` or ``forward(args, active)``, and
a `name`. The function is traced when the primitive is bound: the parameter `call_jaxpr` is a program. Two
traces need no program and take the function itself (`Trace.call`): evaluation runs it, differentiation runs its rule.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bedrax.core import dtypes, staging
from bedrax.core.avals import aval_of
from bedrax.core.dead_code import dead_code_rules
from bedrax.core.errors import UnexpectedTracerError
from bedrax.core.ir import DebugInfo, Eqn, Jaxpr, run
from bedrax.core.public import public
from bedrax.core.tables import Use, calls, families_on_bases, print_rules, programs, varying_rules
from bedrax.core.tracing import Primitive, current, mutable_among, varying_axes
from bedrax.lax.primitives.calls import closed_call_p
from bedrax.lax.symbolic_zeros import SymbolicZero, Zero, instantiate

_FAMILY = "custom_rules"
families_on_bases.add(_FAMILY)


class FunctionWithRules(Primitive):
    """A primitive that applies a function with rules; params: call_jaxpr, rule, num_consts."""

    transformed_params: tuple[str, ...] = ("rule",)  # parameters that only transformations read

    __slots__ = ()

    def call(self, rule: Any, args: Sequence[Any]) -> list[Any]:
        """Apply the function under the current trace.

        Args:
          args: the leaves of its arguments.

        Returns:
          The leaves of its result.
        """
        mutable = mutable_among(args)
        if mutable is not None:
            rule, args = mutable.parts(self, rule, args)
        return current.trace.call(self, rule, args)

    def stage(self, rule: Any, args: Sequence[Any]) -> list[Any]:
        """Trace the function, and bind its program; closed-over values become its first arguments."""
        program = staging.program_of(rule.primal, [aval_of(x) for x in args], DebugInfo("a custom rule", rule.name))
        program, consts = staging.close_over(program)
        return self.bind(*consts, *args, call_jaxpr=program, rule=rule, num_consts=len(consts))


@dataclass(frozen=True)
class BoundFunction:
    """A function of an equation, as libraries that bind the equation again get it.

    Attributes:
      call_wrapped: from values to a list of values.
      params: of the equation.
    """

    call_wrapped: Callable[..., list[Any]]
    params: dict[str, Any]


def pushed(rule: Any, hidden: int = 0) -> Callable[..., list[Any]]:
    """The function of operands and their tangents that computes results and their tangents by a rule.

    Args:
      hidden: the number of leading operands that the rule does not take.
    """

    def of_both(*args: Any) -> list[Any]:
        half = len(args) // 2
        outs, tangents = rule.jvp(args[hidden:half], args[half + hidden :])
        return [*outs, *map(instantiate, tangents)]

    return of_both


@dataclass(frozen=True, eq=False)
class RuleOfFunctions:
    """The rule of a function that a library gives as two functions. They have the method ``call_wrapped``.

    Attributes:
      fun: from operands to the list of results.
      pushed: from operands and their tangents to the list of results and their tangents.
      symbolic_zeros: whether `pushed` takes a `SymbolicZero` for a tangent that is known to be zero.
    """

    fun: Any
    pushed: Any
    symbolic_zeros: bool
    optimize_remat: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return getattr(self.fun, "__name__", "a function")

    def primal(self, *args: Any) -> list[Any]:
        return list(self.fun.call_wrapped(*args))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        if self.symbolic_zeros:
            tangents = [SymbolicZero(t.aval) if type(t) is Zero else t for t in tangents]
        both = list(self.pushed.call_wrapped(*primals, *tangents))
        outs, moved = both[: len(both) // 2], both[len(both) // 2 :]
        return outs, [
            Zero.of(x) if type(t) is SymbolicZero or aval_of(x).to_tangent_aval().dtype == dtypes.float0 else t
            for x, t in zip(outs, moved, strict=True)
        ]


class FunctionWithJVP(FunctionWithRules):
    """`custom_jvp_call`. Instead of its params, `bind` takes two functions: `subfuns` of `get_bind_params`, or others."""

    __slots__ = ()

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The params that `bind` takes for an equation: `symbolic_zeros`, and the functions `subfuns`.

        The first of these computes the results of the operands; the second one, of operands and tangents, the results
        and their tangents.
        """
        rule, hidden = params["rule"], params["num_consts"]

        def primal(*args):
            return run_call(*args, **params)

        subfuns = (BoundFunction(primal, params), BoundFunction(pushed(rule, hidden), params))
        return {"subfuns": subfuns, "symbolic_zeros": rule.symbolic_zeros}

    def bind(self, *args: Any, subfuns: Sequence[Any] = (), **params: Any) -> Any:
        """Apply the function; see the class."""
        if not subfuns:
            return super().bind(*args, **params)
        if len(subfuns) != 2 or not all(hasattr(f, "call_wrapped") for f in subfuns):
            raise TypeError(
                public(
                    "custom_jvp_call: subfuns are two functions with a method call_wrapped, as jax.extend.linear_util"
                    f" makes them, got {', '.join(type(f).__name__ for f in subfuns)}"
                )
            )
        if not all(isinstance(f, BoundFunction) for f in subfuns):
            return self.call(RuleOfFunctions(*subfuns, **params), args)
        own = subfuns[0].params
        if params != {"symbolic_zeros": own["rule"].symbolic_zeros}:
            raise TypeError(
                f"custom_jvp_call: with subfuns, the only other param is symbolic_zeros, unchanged; got {params}"
            )
        return super().bind(*args, **own)


# params: call_jaxpr, rule (``jvp(primals, tangents) -> results, tangents``: lists that may hold `Zero`), num_consts
# (leading arguments that the function closed over)
custom_jvp_call_p: Final = FunctionWithJVP("custom_jvp_call", _FAMILY, multiple_results=True)
# params: call_jaxpr, rule (``forward(args, active) -> results, residuals, bwd``, where ``bwd(residuals, cts) -> arg cts``),
# num_consts
custom_vjp_call_p: Final = FunctionWithRules("custom_vjp_call", _FAMILY, multiple_results=True)
# A function that is linear in its last arguments. params: call_jaxpr (residuals, linear arguments -> results),
# transpose (residuals, cotangents of the results -> cotangents of the linear arguments), num_res
linear_call_p: Final = Primitive("linear_call", _FAMILY, multiple_results=True)


# ---- logs of backward rules


class _Logs(threading.local):
    collected: dict[Any, Any] | None = None


_logs = _Logs()


@contextlib.contextmanager
def collecting_logs() -> Iterator[dict[Any, Any]]:
    """Context manager: the dict of the values that backward rules log inside it."""
    saved, _logs.collected = _logs.collected, {}
    try:
        yield _logs.collected
    finally:
        _logs.collected = saved


def log(entries: dict[Any, Any]) -> None:
    """Record the entries that a backward rule logs; they are dropped outside of `collecting_logs`.

    Raises:
      ValueError: a key was recorded before.
    """
    if _logs.collected is None:
        return
    twice = sorted(map(str, entries.keys() & _logs.collected.keys()))
    if twice:
        raise ValueError(
            f"keys of backward-pass logs are unique within a backward pass; {', '.join(twice)} was logged before. Give each"
            " call a key of its own."
        )
    _logs.collected.update(entries)


# Whether an equation of a linear program logs when it is transposed: primitive -> (params -> boolean).
logging: dict[Primitive, Callable[[dict[Any, Any]], bool]] = {}


@dataclass(frozen=True)
class RuleOfProgram:
    """A rule, as the rule of the program of its function; the closed-over values come first.

    Attributes:
      rule: of the function.
      program: of that function, with more results.
      hidden: the number of leading arguments that the function closed over; its rule does not take them.
    """

    rule: Any
    program: Jaxpr
    hidden: int

    @property
    def name(self) -> Any:
        return self.rule.name

    @property
    def symbolic_zeros(self) -> Any:
        return hasattr(self.rule, "jvp") or self.rule.symbolic_zeros

    @property
    def optimize_remat(self) -> Any:
        return self.rule.optimize_remat

    @property
    def functions(self) -> Any:
        return self.rule.functions

    def primal(self, *args: Any) -> list[Any]:
        """The program."""
        return run(self.program, *args)

    def own(self, values: Sequence[Any], active: Sequence[bool]) -> Sequence[Any]:
        """The arguments, or their tangents, that the rule takes; the other ones must not be active."""
        if any(active[: self.hidden]):
            raise UnexpectedTracerError(
                f"{self.name} is differentiated with respect to a closed-over value or reference, which its rule does not"
                " take: pass it as an argument, and add it to the rule"
            )
        return values[self.hidden :]


def run_call(*args: Any, call_jaxpr: Jaxpr | None, **_: Any) -> list[Any]:
    """The function."""
    return run(call_jaxpr, *args)


def _types(*avals, call_jaxpr, **_):
    if len(avals) != len(call_jaxpr.invars):
        raise TypeError(f"{len(avals)} operands for a program that takes {len(call_jaxpr.invars)} arguments")
    return call_jaxpr.out_avals


def _printed(params: dict) -> dict:
    rule = params["rule"]
    return {"name": rule.name, "call_jaxpr": params["call_jaxpr"], "symbolic_zeros": rule.symbolic_zeros}


for _prim in (custom_jvp_call_p, custom_vjp_call_p, linear_call_p):
    _prim.abstract(_types)
    _prim.def_impl(run_call)
for _prim in (custom_jvp_call_p, custom_vjp_call_p):
    programs.add(_prim, lambda params: [calls(params["call_jaxpr"])])
    print_rules.add(_prim, _printed)


@programs.rule(linear_call_p)
def _linear_call_programs(params):
    back, residuals = params["transpose"], range(params["num_res"])
    cotangents = (None,) * (len(back.invars) - len(residuals))
    return [calls(params["call_jaxpr"]), Use(back, (*residuals, *cotangents), (None,) * len(back.outvars))]


# The linear part of a function with its own backward rule. Linear in its last `num_tangents`
# arguments; only its transposition is defined. params: bwd, num_res, out_avals, active, symbolic_zeros
custom_lin_p: Final = Primitive("custom_lin", _FAMILY, multiple_results=True)
logging[custom_lin_p] = lambda params: getattr(params["bwd"], "logs", False)


@custom_lin_p.abstract
def _custom_lin_types(*avals, out_avals, **_):
    return list(out_avals)


# A backward rule returns cotangents of the arguments as passed: no argument is cast to varying before the call.
@varying_rules.rule(custom_vjp_call_p)
def _vjp_varying(axes, params):
    return None, list(map(varying_axes, params["call_jaxpr"].out_avals))


varying_rules.add(custom_lin_p, lambda axes, params: (None, list(map(varying_axes, params["out_avals"]))))


@custom_lin_p.def_impl
def refuse_forward_mode(*args: float | list[Any], **_: Any) -> None:
    """Raise TypeError: `custom_lin` has no rule except its transposition."""
    raise TypeError(
        public(
            "can't apply forward-mode autodiff (jvp) to a custom_vjp function. It has a rule for reverse mode only;"
            " give the function a rule with jax.custom_jvp to use forward mode, too."
        )
    )


# The forward rule of a custom_vjp function with `optimize_remat`: where no residual is used (the forward pass of a
# `checkpoint`), the function itself replaces it. params: jaxpr (args -> results, residuals), primal (args -> results)
remat_opt_p: Final = Primitive("remat_opt", _FAMILY, multiple_results=True)
remat_opt_p.abstract(lambda *avals, jaxpr, primal: jaxpr.out_avals)
remat_opt_p.def_impl(lambda *args, jaxpr, **_: run(jaxpr, *args))
programs.add(remat_opt_p, lambda params: [calls(params["jaxpr"]), calls(params["primal"])])


@dead_code_rules.rule(remat_opt_p)
def _without_residuals(eqn, used):
    primal = eqn.params["primal"]
    count = len(primal.outvars)
    if any(used[count:]):
        return [True] * len(eqn.invars), eqn
    return [True] * len(eqn.invars), Eqn(
        closed_call_p, eqn.invars, eqn.outvars[:count], {"jaxpr": primal}, eqn.effects, eqn.source_info
    )
