"""Functions whose derivative rules use references, as functions of the values of references.

The pure call takes values instead of references, and returns the last values of all references after its results: a
rule may write to references that its function only reads. A rule determines the derivative of a reference's value only
by a write to the reference of tangents. Otherwise the tangent passes the call unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.core.ir import run
from bedrax.core.tracing import current, eval_trace
from bedrax.lax.primitives.custom_rules import RuleOfProgram, custom_jvp_call_p, custom_vjp_call_p, run_call
from bedrax.lax.symbolic_zeros import Zero, instantiate
from bedrax.state.discharge import discharged
from bedrax.state.primitives import DischargeTrace
from bedrax.state.rules.calls import values_of, write_back
from bedrax.state.tables import discharge_rules
from bedrax.state.types import Cell


@dataclass(frozen=True)
class PureRule(RuleOfProgram):
    """A rule with references, as the rule of the pure function; `types` are those of the arguments, including
    references."""

    types: tuple[Any, ...]

    @property
    def refs(self) -> Any:
        return [i for i, a in enumerate(self.types) if a.mutable]

    def _purely(self, fun: Callable, values: Sequence[Any], mutable: Sequence[Any]) -> tuple[list, Any]:
        """Run a function of references; `mutable` has the types of the references, and None for other arguments."""

        def flat(*xs):
            cells = [
                x if a is None else Cell(a, x, current.trace, borrowed=True) for x, a in zip(xs, mutable, strict=True)
            ]
            outs, aux = fun(*cells)
            return [*outs, *(c._value for c in cells if type(c) is Cell)], aux

        program, aux = staging.trace_to_jaxpr(flat, [aval_of(x) for x in values], kind=DischargeTrace)
        return run(program, *values), aux

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Results and values of references, and the tangents of both (or `Zero`)."""
        self.own(tangents, [type(t) is not Zero for t in tangents])
        given = list(tangents) if self.rule.symbolic_zeros else [instantiate(t) for t in tangents]
        live = [i for i, t in enumerate(given) if type(t) is not Zero]
        count = len(primals)
        mutable = [a if a.mutable else None for a in self.types]
        moving = [None if mutable[i] is None else self.types[i].to_tangent_aval() for i in live]

        def pushed(*xs):
            known = dict(zip(live, xs[count:], strict=True))
            own = [known.get(i, given[i]) for i in range(self.hidden, count)]
            outs, moved = self.rule.jvp(xs[self.hidden : count], own)
            still = {i for i in self.refs if type(tangents[i]) is Zero and not (i in known and known[i]._written)}
            return [*outs, *(t for t in moved if type(t) is not Zero)], ([type(t) is Zero for t in moved], still)

        out, (zeros, still) = self._purely(pushed, [*primals, *(given[i] for i in live)], [*mutable, *moving])
        n, rest = len(zeros), iter(out[len(zeros) :])
        moved = [Zero.of(x) if z else next(rest) for x, z in zip(out[:n], zeros, strict=True)]
        finals = [next(rest) for _ in self.refs]
        pushed_on = {i: next(rest) for i in live if self.types[i].mutable}
        tails = [Zero.of(x) if i in still else pushed_on[i] for i, x in zip(self.refs, finals, strict=True)]
        return [*out[:n], *finals], [*moved, *tails]

    def forward(self, args: Sequence[Any], active: Sequence[bool]) -> tuple[list[Any], list[Any], PurePullback]:
        """Results and values of references, residuals, and the backward rule that reads these."""

        def forward(*xs):
            outs, residuals, bwd = self.rule.forward(self.own(xs, active), active[self.hidden :])
            if any(type(x) is Cell for x in residuals):
                raise ValueError(
                    f"the backward rule of {self.name} gets a reference that the differentiated (or mapped) function made:"
                    " it would be read or written in the backward pass, when that function has ended. Make the reference"
                    " outside, and let the function that is differentiated close over it; or give the rule what the"
                    " reference holds, ref[...]."
                )
            return [*outs, *residuals], (len(outs), len(residuals), bwd)

        mutable = [a if a.mutable else None for a in self.types]
        out, (n, count, bwd) = self._purely(forward, args, mutable)
        moves = (*[True] * n, *(active[i] for i in self.refs))
        back = PurePullback(bwd, n, self.hidden, tuple(self.refs), moves)
        return [*out[:n], *out[n + count :]], out[n : n + count], back


@dataclass(frozen=True)
class PurePullback:
    """A backward rule. The cotangent of a reference's last value is returned as that of its first value.

    Attributes:
      moves: a boolean per result: whether it has a tangent.
    """

    bwd: Any
    count: int
    hidden: int
    refs: tuple[Any, ...]
    moves: tuple[Any, ...]

    @property
    def logs(self) -> Any:
        return getattr(self.bwd, "logs", False)

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """A cotangent or None per argument."""
        back = [*[None] * self.hidden, *self.bwd(residuals, cts[: self.count])]
        for i, ct in zip(self.refs, cts[self.count :], strict=True):
            back[i] = ct
        return back


def _call(prim):
    @discharge_rules.rule(prim)
    def rule(*args, **params):
        if current.trace is eval_trace:  # it is no longer differentiated
            return run_call(*args, **params)
        call = params["call_jaxpr"]
        pure, written = discharged(call)
        count = len(call.outvars)
        last = dict(zip(written, pure.outvars[count:], strict=True))
        refs = [i for i, v in enumerate(call.invars) if v.aval.mutable]
        pure = pure.replace(outvars=[*pure.outvars[:count], *(last.get(i, pure.invars[i]) for i in refs)])
        own = PureRule(params["rule"], pure, params["num_consts"], tuple(call.in_avals))
        out = prim.bind(*values_of(args), call_jaxpr=pure, rule=own, num_consts=0)
        write_back(args, refs, out[count:])
        return out[:count]


_call(custom_jvp_call_p)
_call(custom_vjp_call_p)
