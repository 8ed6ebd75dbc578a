"""Checks inside functions with custom rules: the function returns its error, and its rules still differentiate it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bedrax.autodiff.tables import Zero, instantiate
from bedrax.checkify.rules.calls import report
from bedrax.checkify.trace import check_rules, checked, collect, strip_gradients
from bedrax.core.ir import run
from bedrax.lax.primitives.custom_rules import RuleOfProgram, custom_jvp_call_p, custom_vjp_call_p, remat_opt_p


@dataclass(frozen=True)
class CheckedRule(RuleOfProgram):
    """The rule of the checked function, which returns the `count` leaves of an error, and then its results."""

    count: int

    def _error(self, args: Sequence[Any]) -> list:
        return run(self.program, *strip_gradients(args))[: self.count]

    @staticmethod
    def _silently(run: Callable) -> Any:
        """Run a rule without checks: the function returns the same error in every mode."""
        return collect(frozenset(), lambda trace: run())[1]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Error and results, and their tangents (or `Zero`)."""
        error = self._error(primals)
        tangents = self.own(tangents, [type(t) is not Zero for t in tangents])
        tangents = tangents if self.rule.symbolic_zeros else [instantiate(t) for t in tangents]
        outs, moved = self._silently(lambda: self.rule.jvp(primals[self.hidden :], tangents))
        return [*error, *outs], [*map(Zero.of, error), *moved]

    def forward(self, args: Sequence[Any], active: Sequence[bool]) -> tuple[list[Any], list[Any], CheckedPullback]:
        """Return the error and the results, the residuals, and the backward rule, which takes the residuals."""
        error = self._error(args)
        own = self.own(args, active)
        outs, residuals, bwd = self._silently(lambda: self.rule.forward(own, active[self.hidden :]))
        return [*error, *outs], residuals, CheckedPullback(bwd, self.count, self.hidden)


@dataclass(frozen=True)
class CheckedPullback:
    """A backward rule that also gets the cotangents of the error, and ignores them."""

    bwd: Any
    count: int
    hidden: int

    @property
    def logs(self) -> Any:
        return getattr(self.bwd, "logs", False)

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """A cotangent or None per argument."""
        back = collect(frozenset(), lambda trace: self.bwd(residuals, cts[self.count :]))[1]
        return [*[None] * self.hidden, *back]


def _call(prim):
    @check_rules.rule(prim, kind="program")
    def rule(trace, *args, **params):
        program, spec = checked(params["call_jaxpr"], trace.kinds)
        if program is params["call_jaxpr"]:
            return prim.bind(*args, **params)
        rule = CheckedRule(params["rule"], program, params["num_consts"], len(spec.types()))
        return report(trace, spec, prim.bind(*args, call_jaxpr=program, rule=rule, num_consts=0))


_call(custom_jvp_call_p)
_call(custom_vjp_call_p)


@check_rules.rule(remat_opt_p, kind="program")
def _remat_opt(trace, *args, jaxpr, primal):
    program, spec = checked(jaxpr, trace.kinds)
    if not spec.failures:
        return remat_opt_p.bind(*args, jaxpr=program, primal=primal)
    return report(trace, spec, run(program, *args))
