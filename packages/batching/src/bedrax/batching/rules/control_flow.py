"""Batching of control flow.

A loop's carry is mapped where its initial value is, or where the body makes it so: the
smallest such set is found by iteration.
"""

import functools

import numpy as np

from bedrax.batching.tables import all_to_front, batch_rules, conditional_effects, made_conditional, to_front
from bedrax.batching.trace import batch_flat, batch_jaxpr
from bedrax.core import dtypes, staging
from bedrax.core.avals import aval_of
from bedrax.core.facts import fact
from bedrax.core.ir import run
from bedrax.lax.axes import move_axis
from bedrax.lax.primitives.callbacks import io_effect
from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p
from bedrax.lax.primitives.elementwise import eq_p, ne_p, select_n_p, stop_gradient_p
from bedrax.lax.primitives.reductions import reduce_or_p
from bedrax.lax.primitives.shaping import broadcast_in_dim


def _select(which, *cases):
    """Choose between batches element by element; all are mapped at 0."""
    return select_n_p.bind(broadcast_in_dim(which, aval_of(cases[0]).shape, (0,)), *cases)


@batch_rules.rule(scan_p)
def _scan(axis, args, dims, *, jaxpr, num_consts, num_carry, length, **params):
    edge = num_consts + num_carry
    mapped = [d is not None for d in dims[num_consts:edge]]
    x_dims = tuple(None if d is None else (0 if d == 0 else d - 1) for d in dims[edge:])
    const_dims = tuple(dims[:num_consts])
    while True:
        carry_dims = tuple(0 if m else None for m in mapped)
        force = (*mapped, *([False] * (len(jaxpr.outvars) - num_carry)))
        batched, out_dims = batch_jaxpr(jaxpr, axis, (*const_dims, *carry_dims, *x_dims), force)
        grown = [m or d is not None for m, d in zip(mapped, out_dims[:num_carry], strict=True)]
        if grown == mapped:
            break
        mapped = grown
    carry = [
        to_front(x, d, axis.size) if m else x
        for x, d, m in zip(args[num_consts:edge], dims[num_consts:edge], mapped, strict=True)
    ]
    xs = [move_axis(x, 0, 1) if d == 0 else x for x, d in zip(args[edge:], dims[edge:], strict=True)]
    out = scan_p.bind(
        *args[:num_consts], *carry, *xs, jaxpr=batched, num_consts=num_consts, num_carry=num_carry, length=length,
        **params,
    )  # fmt: skip
    return out, [*out_dims[:num_carry], *(None if d is None else d + 1 for d in out_dims[num_carry:])]


@batch_rules.rule(while_p)
def _while(axis, args, dims, *, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    edge = cond_nconsts + body_nconsts
    cond_dims, body_dims = tuple(dims[:cond_nconsts]), tuple(dims[cond_nconsts:edge])
    mapped = [d is not None for d in dims[edge:]]
    # What the body passes on is the same in all rounds: it need not be mapped where elements end at different times.
    passed = [old is new for old, new in zip(body_jaxpr.invars[body_nconsts:], body_jaxpr.outvars, strict=True)]
    while True:
        carry_dims = tuple(0 if m else None for m in mapped)
        batched, out_dims = batch_jaxpr(body_jaxpr, axis, (*body_dims, *carry_dims), tuple(mapped))
        cond, (pred_dim,) = batch_jaxpr(cond_jaxpr, axis, (*cond_dims, *carry_dims))
        grown = [
            m or d is not None or (pred_dim is not None and not same)
            for m, d, same in zip(mapped, out_dims, passed, strict=True)
        ]
        if grown == mapped:
            break
        mapped = grown
    carry = [to_front(x, d, axis.size) if m else x for x, d, m in zip(args[edge:], dims[edge:], mapped, strict=True)]
    if pred_dim is None:
        out = while_p.bind(
            *args[:edge], *carry, cond_jaxpr=cond, cond_nconsts=cond_nconsts, body_jaxpr=batched,
            body_nconsts=body_nconsts,
        )  # fmt: skip
        return out, [0 if m else None for m in mapped]
    if io_effect in cond.effects | batched.effects:
        raise NotImplementedError(
            "vmap of a while_loop whose elements end at different times, with an io_callback inside: the loop goes on until"
            " the last one ends, and the callback would be called for those that ended, too. Take it out of the loop, or"
            " map with jax.lax.map."
        )
    # Elements end at different times: go on while any goes on, and hold the others still.
    body, flags = made_conditional(body_jaxpr)
    if flags:
        batched, _ = batch_jaxpr(body, axis, (*(0,) * flags, *body_dims, *carry_dims), tuple(mapped))
    key = (_held, cond, batched, tuple(mapped))
    held = fact(body_jaxpr, key, lambda: _held(cond, cond_nconsts, batched, body_nconsts, flags, mapped))
    out = while_p.bind(
        *args[:cond_nconsts], *args[:edge], *carry, cond_jaxpr=held[0], cond_nconsts=cond_nconsts, body_jaxpr=held[1],
        body_nconsts=edge,
    )  # fmt: skip
    return out, [0 if m else None for m in mapped]


def _held(cond, cond_nconsts: int, body, body_nconsts: int, flags: int, mapped) -> tuple:
    """Condition and body of a loop of whose elements some go on while others have ended.

    The first `flags` arguments of `body` say which elements go on.
    """
    edge = cond_nconsts + body_nconsts

    def any_goes_on(*values):
        return [reduce_or_p.bind(*run(cond, *values), axes=(0,))]

    def step(*values):
        cond_consts, body_consts, carry = values[:cond_nconsts], values[cond_nconsts:edge], values[edge:]
        (pred,) = run(cond, *cond_consts, *carry)
        new = run(body, *[pred] * flags, *body_consts, *carry)
        return [_select(pred, old, x) if m else old for old, x, m in zip(carry, new, mapped, strict=True)]

    body_types = [*cond.in_avals[:cond_nconsts], *body.in_avals[flags:]]
    return staging.program_of(any_goes_on, cond.in_avals), staging.program_of(step, body_types)


def _only_where(chosen, x, dim, size: int) -> tuple:
    """An operand of a branch, and where it is mapped; its derivative is that of the elements that take the branch.

    Every branch is computed for all elements, and its derivative may be infinite or NaN at those that do not take it;
    0 times that, which is what a choice among results alone would send back, is NaN.
    """
    if not dtypes.is_inexact(aval_of(x).dtype):
        return x, dim
    x = to_front(x, dim, size)
    return _select(chosen, stop_gradient_p.bind(x), x), 0


def _operand_of_all(branches, k: int) -> int | None:
    """The operand that every branch passes on as its result `k`; None if the branches differ, or one computes it."""
    places = {next((i for i, v in enumerate(b.invars) if v is b.outvars[k]), None) for b in branches}
    return places.pop() if len(places) == 1 else None


def _others(branch, passed, *operands) -> list:
    """The results of a branch that are not operands passed on by all branches."""
    return [x for x, k in zip(run(branch, *operands), passed, strict=True) if k is None]


@batch_rules.rule(cond_p)
def _cond(axis, args, dims, *, branches, **params):
    index, *operands = args
    index_dim, *operand_dims = dims
    if index_dim is not None:
        known = tuple(conditional_effects)
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
    found = [batch_jaxpr(b, axis, tuple(operand_dims))[1] for b in branches]
    force = tuple(any(d is not None for d in column) for column in zip(*found, strict=True))
    batched = tuple(batch_jaxpr(b, axis, tuple(operand_dims), force)[0] for b in branches)
    out = cond_p.bind(index, *operands, branches=batched, **params)
    return out, [0 if f else None for f in force]
