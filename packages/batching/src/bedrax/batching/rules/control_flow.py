"""Batching of control flow: loops that end at a different step for each element, and branches chosen per element."""

import functools

import numpy as np

from bedrax.batching.holders import batched, batches_programs
from bedrax.batching.tables import all_to_front, batch_rules, conditional_effects, made_conditional, to_front
from bedrax.batching.trace import batch_flat, batch_jaxpr
from bedrax.core import dtypes, staging
from bedrax.core.avals import aval_of
from bedrax.core.facts import fact
from bedrax.core.ir import run
from bedrax.core.tables import programs
from bedrax.lax.primitives.callbacks import DebugEffect, OrderedDebugEffect, io_effect
from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p
from bedrax.lax.primitives.elementwise import eq_p, ne_p, select_n_p, stop_gradient_p
from bedrax.lax.primitives.reductions import reduce_or_p
from bedrax.lax.primitives.shaping import broadcast_in_dim


def _select(which, *cases):
    """Choose between batches element by element; all are mapped at 0."""
    return select_n_p.bind(broadcast_in_dim(which, aval_of(cases[0]).shape, (0,)), *cases)


batches_programs(scan_p)


@batch_rules.rule(while_p)
def _while(axis, args, dims, **params):
    plan = batched(programs[while_p](params), axis, dims)
    values, found = plan.values(axis, args, dims), plan.lifted
    if found.decision is None:
        return plan.bind(while_p, values, params)
    cond, stepped = found.programs
    cond_nconsts, body_nconsts = params["cond_nconsts"], params["body_nconsts"]
    edge = cond_nconsts + body_nconsts
    mapped = tuple([d is not None for d in found.marks[edge:]])
    if io_effect in cond.effects | stepped.effects:
        raise NotImplementedError(
            "vmap of a while_loop whose elements end at different times, with an io_callback inside: the loop goes on until"
            " the last one ends, and the callback would be called for those that ended, too. Take it out of the loop, or"
            " map with lax.map."
        )
    # Elements end at different steps: the loop continues while any element does, and the others keep their values.
    body_jaxpr = params["body_jaxpr"]
    body, flags = made_conditional(body_jaxpr)
    if flags:
        stepped, _ = batch_jaxpr(body, axis, (*(0,) * flags, *found.marks[cond_nconsts:]), mapped)
    key = (_held, cond, stepped, mapped)
    held = fact(body_jaxpr, key, lambda: _held(cond, cond_nconsts, stepped, body_nconsts, flags, mapped))
    out = while_p.bind(
        *values[:cond_nconsts],
        *values,
        cond_jaxpr=held[0],
        cond_nconsts=cond_nconsts,
        body_jaxpr=held[1],
        body_nconsts=edge,
    )
    return out, [0 if m else None for m in mapped]


def _held(cond, cond_nconsts: int, body, body_nconsts: int, flags: int, mapped) -> tuple:
    """Condition and body of a loop in which some elements continue and others have ended.

    The first `flags` arguments of `body` are booleans: which elements continue.
    """
    edge = cond_nconsts + body_nconsts

    def any_continues(*values):
        return [reduce_or_p.bind(*run(cond, *values), axes=(0,))]

    def step(*values):
        cond_consts, body_consts, carry = values[:cond_nconsts], values[cond_nconsts:edge], values[edge:]
        (pred,) = run(cond, *cond_consts, *carry)
        new = run(body, *[pred] * flags, *body_consts, *carry)
        return [_select(pred, old, x) if m else old for old, x, m in zip(carry, new, mapped, strict=True)]

    body_types = [*cond.in_avals[:cond_nconsts], *body.in_avals[flags:]]
    return staging.program_of(any_continues, cond.in_avals), staging.program_of(step, body_types)


def _only_where(chosen, x, dim, size: int) -> tuple:
    """An operand of a branch and its mapped axis. Its derivative is zero for elements that do not take the branch.

    Every branch is computed for all elements. Its derivative may be infinite or NaN for elements that do not take it.
    A choice among results alone would return 0 times that derivative, which is NaN.
    """
    if not dtypes.is_inexact(aval_of(x).dtype):
        return x, dim
    x = to_front(x, dim, size)
    return _select(chosen, stop_gradient_p.bind(x), x), 0


def _operand_of_all(branches, k: int) -> int | None:
    """The operand that every branch returns unchanged as result `k`. None if the branches differ or one computes it."""
    places = {next((i for i, v in enumerate(b.invars) if v is b.outvars[k]), None) for b in branches}
    return places.pop() if len(places) == 1 else None


def _others(branch, passed, *operands) -> list:
    """The results of a branch, except the operands that all branches return unchanged."""
    return [x for x, k in zip(run(branch, *operands), passed, strict=True) if k is None]


@batch_rules.rule(cond_p)
def _cond(axis, args, dims, **params):
    if dims[0] is None:
        return batched(programs[cond_p](params), axis, dims).bind(cond_p, args, params)
    branches = params["branches"]
    index, *operands = args
    operand_dims = dims[1:]
    known = (*conditional_effects, DebugEffect, OrderedDebugEffect)  # debug callbacks run for all elements
    if found := sorted({str(e) for b in branches for e in b.effects if not isinstance(e, known)}):
        raise NotImplementedError(
            "vmap of cond with a mapped predicate computes every branch, so branches with effects are not allowed:"
            f" found {found}. Take the effects out of the branches."
        )
    passed = [_operand_of_all(branches, k) for k in range(len(branches[0].outvars))]
    results = []
    for i, branch in enumerate(branches):
        chosen = eq_p.bind(index, np.int32(i))
        found = [_only_where(chosen, x, d, axis.size) for x, d in zip(operands, operand_dims, strict=True)]
        program, flags = made_conditional(branch)
        found = [(chosen, 0)] * flags + found
        outs, out_dims = batch_flat(
            functools.partial(_others, program, passed), axis, [x for x, _ in found], [d for _, d in found]
        )
        results.append(all_to_front(outs, out_dims, axis.size))
    which = ne_p.bind(index, np.int32(0)) if len(branches) == 2 else index
    chosen = iter([_select(which, *cases) for cases in zip(*results, strict=True)])
    out = [(next(chosen), 0) if k is None else (operands[k], operand_dims[k]) for k in passed]
    return [x for x, _ in out], [d for _, d in out]
