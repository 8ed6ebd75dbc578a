"""Batching of functions with rules of their own: the functions and their rules are batched together.

The mapped axes of results are chosen first, so that a function and its rules agree. The axis is 0, or None for a
result that is not mapped according to a program with collectives over the axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bedrax import pytree
from bedrax.batching.tables import AxisData, all_to_front, batch_rules, to_front
from bedrax.batching.trace import batch_flat, batch_flat_with_aux, batch_jaxpr, place, place_all
from bedrax.core.passes import axes_of
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives import custom_rules
from bedrax.lax.primitives.reductions import reduce_sum_p
from bedrax.lax.symbolic_zeros import Zero


@dataclass(frozen=True)
class BatchedRule:
    """The rule of a function on batches, made from the rule of the function on elements.

    Attributes:
      rule: the rule of the function on elements.
      dims: the mapped axes of the arguments.
      out_dims: the mapped axes of the results, each 0 or None; None in place of the tuple if all are None.
    """

    rule: Any
    axis: AxisData
    dims: tuple[Any, ...]
    out_dims: tuple[Any, ...] | None = None

    @property
    def name(self) -> Any:
        return self.rule.name

    @property
    def symbolic_zeros(self) -> Any:
        return self.rule.symbolic_zeros

    @property
    def optimize_remat(self) -> Any:
        return self.rule.optimize_remat

    @property
    def functions(self) -> Any:
        return self.rule.functions

    def placed(self, outs: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
        """Results (or their tangents), moved to the mapped axes in `out_dims`."""
        if self.out_dims is None:
            return all_to_front(outs, dims, self.axis.size)
        return place_all(outs, dims, self.out_dims, self.axis.size)

    def primal(self, *args: ArrayLike) -> list[Any]:
        """The function on batches."""
        outs, dims = batch_flat(self.rule.primal, self.axis, args, self.dims)
        return self.placed(outs, dims)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Results and tangents (or `Zero`)."""
        live = [t for t in tangents if type(t) is not Zero]
        live_dims = [d for t, d in zip(tangents, self.dims, strict=True) if type(t) is not Zero]

        def flat(*xs):
            given, rest = xs[: len(primals)], iter(xs[len(primals) :])
            pushed = [Zero.of(p) if type(t) is Zero else next(rest) for p, t in zip(given, tangents)]
            outs, moved = self.rule.jvp(given, pushed)
            zeros = [type(t) is Zero for t in moved]
            return [*outs, *(t for t in moved if type(t) is not Zero)], zeros

        vals, dims, zeros = batch_flat_with_aux(flat, self.axis, [*primals, *live], [*self.dims, *live_dims])
        n = len(zeros)
        outs, rest = self.placed(vals[:n], dims[:n]), iter(zip(vals[n:], dims[n:], strict=True))
        moved = [(x, None) if is_zero else next(rest) for x, is_zero in zip(outs, zeros, strict=True)]
        wanted = self.out_dims or (0,) * n
        tangents = [
            Zero.of(x) if is_zero else place(t, d, w, self.axis.size)
            for x, is_zero, (t, d), w in zip(outs, zeros, moved, wanted, strict=True)
        ]
        return outs, tangents

    def forward(self, args: Sequence[Any], active: Sequence[bool]) -> tuple[list[Any], list[Any], BatchedPullback]:
        """Results, residuals with any mapped axes, and the pullback that reads them."""

        def flat(*xs):
            outs, residuals, bwd = self.rule.forward(xs, active)
            return [*outs, *residuals], (len(outs), bwd)

        vals, dims, (n, bwd) = batch_flat_with_aux(flat, self.axis, args, self.dims)
        outs = self.placed(vals[:n], dims[:n])
        return outs, vals[n:], BatchedPullback(bwd, self.axis, tuple(dims[n:]), self.dims, self.out_dims or (0,) * n)


@dataclass(frozen=True)
class BatchedPullback:
    """A backward rule on batches.

    Attributes:
      bwd: the rule on elements.
      res_dims, dims, out_dims: the mapped axes of the residuals, the arguments and the results.
    """

    bwd: Any
    axis: AxisData
    res_dims: tuple[Any, ...]
    dims: tuple[Any, ...]
    out_dims: tuple[Any, ...]

    @property
    def moves(self) -> Any:
        return getattr(self.bwd, "moves", None)

    @property
    def logs(self) -> Any:
        return getattr(self.bwd, "logs", False)

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """A cotangent or None per argument, with the mapped axis of the argument."""
        live = [ct for ct in cts if type(ct) is not Zero]
        live_dims = [d for ct, d in zip(cts, self.out_dims, strict=True) if type(ct) is not Zero]

        def flat(*xs):
            own, rest = xs[: len(residuals)], iter(xs[len(residuals) :])
            with custom_rules.collecting_logs() as logs:
                back = self.bwd(own, [ct if type(ct) is Zero else next(rest) for ct in cts])
            zeros = [ct is None or type(ct) is Zero for ct in back]
            logged, log_tree = pytree.tree_flatten(logs)
            return [*logged, *(ct for ct, is_zero in zip(back, zeros, strict=True) if not is_zero)], (zeros, log_tree)

        vals, dims, (zeros, log_tree) = batch_flat_with_aux(
            flat, self.axis, [*residuals, *live], [*self.res_dims, *live_dims]
        )
        n = log_tree.num_leaves
        custom_rules.log(pytree.tree_unflatten(log_tree, all_to_front(vals[:n], dims[:n], self.axis.size)))
        leaving = iter(zip(vals[n:], dims[n:], strict=True))
        return [
            None if is_zero else self._leave(*next(leaving), d) for is_zero, d in zip(zeros, self.dims, strict=True)
        ]

    def _leave(self, ct, found: int | None, wanted: int | None):
        if wanted is None:  # one argument for the whole batch: its cotangents add up
            return reduce_sum_p.bind(to_front(ct, found, self.axis.size), axes=(0,))
        return place(ct, found, wanted, self.axis.size)


def _call(prim):
    def rule(axis, args, dims, *, rule, call_jaxpr=None, num_consts=0):
        if call_jaxpr is None:  # see `BatchTrace.call`
            outs = prim.call(BatchedRule(rule, axis, tuple(dims)), args)
            return outs, [0] * len(outs)
        out_dims, wanted = None, True
        if axis.name in axes_of(call_jaxpr):
            out_dims = tuple(d if d is None else 0 for d in batch_jaxpr(call_jaxpr, axis, tuple(dims))[1])
            wanted = tuple(d is not None for d in out_dims)
        batched, _ = batch_jaxpr(call_jaxpr, axis, tuple(dims), wanted)
        batched_rule = BatchedRule(rule, axis, tuple(dims[num_consts:]), out_dims)
        outs = prim.bind(*args, call_jaxpr=batched, rule=batched_rule, num_consts=num_consts)
        return outs, [0] * len(outs) if out_dims is None else out_dims

    batch_rules.add(prim, rule, "program")


_call(custom_rules.custom_jvp_call_p)
_call(custom_rules.custom_vjp_call_p)

# In reverse mode it is transposed before it is batched.
batch_rules.add(custom_rules.custom_lin_p, custom_rules.refuse_forward_mode, "error")


@batch_rules.rule(custom_rules.remat_opt_p, kind="program")
def _remat_opt(axis, args, dims, *, jaxpr, primal):
    batched, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims), True)
    without_residuals, _ = batch_jaxpr(primal, axis, tuple(dims), True)
    return custom_rules.remat_opt_p.bind(*args, jaxpr=batched, primal=without_residuals), out_dims


@batch_rules.rule(custom_rules.linear_call_p, kind="program")
def _linear_call(axis, args, dims, *, call_jaxpr, transpose, num_res):
    # All linear arguments are mapped: cotangents of an unmapped argument would have to be summed.
    args = [*args[:num_res], *all_to_front(args[num_res:], dims[num_res:], axis.size)]
    res_dims = tuple(dims[:num_res])
    call, out_dims = batch_jaxpr(call_jaxpr, axis, (*res_dims, *[0] * (len(args) - num_res)), True)
    back, _ = batch_jaxpr(transpose, axis, (*res_dims, *[0] * len(out_dims)), True)
    return custom_rules.linear_call_p.bind(*args, call_jaxpr=call, transpose=back, num_res=num_res), out_dims
