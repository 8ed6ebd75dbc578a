"""Batching of control flow.

A loop's carry is mapped where its initial value is, or where the body makes it so: the
smallest such set is found by iteration.
"""

import numpy as np

from bedrax.batching.tables import batch_rules, to_front
from bedrax.batching.trace import batch_flat, batch_jaxpr
from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.core.facts import fact
from bedrax.core.ir import eval_jaxpr
from bedrax.lax.axes import move_axis
from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p


def _select(which, size, on_false, on_true):
    """Choose between two batches element by element; `which` is mapped at 0."""
    from bedrax.lax.primitives.elementwise import select_n_p
    from bedrax.lax.primitives.shaping import broadcast_in_dim

    shape = aval_of(on_true).shape
    return select_n_p.bind(broadcast_in_dim(which, shape, (0,)), on_false, on_true)


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
    while True:
        carry_dims = tuple(0 if m else None for m in mapped)
        batched, out_dims = batch_jaxpr(body_jaxpr, axis, (*body_dims, *carry_dims), tuple(mapped))
        cond, (pred_dim,) = batch_jaxpr(cond_jaxpr, axis, (*cond_dims, *carry_dims))
        grown = [m or d is not None or pred_dim is not None for m, d in zip(mapped, out_dims, strict=True)]
        if grown == mapped:
            break
        mapped = grown
    carry = [
        to_front(x, d, axis.size) if m else x
        for x, d, m in zip(args[edge:], dims[edge:], mapped, strict=True)
    ]
    if pred_dim is None:
        out = while_p.bind(
            *args[:edge], *carry, cond_jaxpr=cond, cond_nconsts=cond_nconsts, body_jaxpr=batched,
            body_nconsts=body_nconsts,
        )  # fmt: skip
        return out, [0 if m else None for m in mapped]
    # Elements end at different times: go on while any goes on, and hold the others still.
    from bedrax.lax.primitives.reductions import reduce_or_p

    def any_goes_on(*values):
        (pred,) = eval_jaxpr(cond, cond.consts, *values)
        return [reduce_or_p.bind(pred, axes=(0,))]

    def step(*values):
        cond_consts, body_consts, held = values[:cond_nconsts], values[cond_nconsts:edge], values[edge:]
        (pred,) = eval_jaxpr(cond, cond.consts, *cond_consts, *held)
        new = eval_jaxpr(batched, batched.consts, *body_consts, *held)
        return [_select(pred, axis.size, old, x) for old, x in zip(held, new, strict=True)]

    body_types = [*cond.in_avals[:cond_nconsts], *batched.in_avals]
    key = ("held", axis, body_dims, cond_dims, cond_jaxpr)
    held_cond, held_body = fact(
        body_jaxpr,
        key,
        lambda: (staging.program_of(any_goes_on, cond.in_avals), staging.program_of(step, body_types)),
    )
    out = while_p.bind(
        *args[:cond_nconsts], *args[:edge], *carry, cond_jaxpr=held_cond, cond_nconsts=cond_nconsts, body_jaxpr=held_body,
        body_nconsts=edge,
    )  # fmt: skip
    return out, [0] * len(out)


@batch_rules.rule(cond_p)
def _cond(axis, args, dims, *, branches, **params):
    index, *operands = args
    index_dim, *operand_dims = dims
    if index_dim is not None:
        if any(b.effects for b in branches):
            raise NotImplementedError(
                "vmap of cond with a mapped predicate computes every branch, so branches with effects are not allowed:"
                f" found {sorted({str(e) for b in branches for e in b.effects})}. Take the effects out of the branches."
            )
        from bedrax.lax.primitives.elementwise import select_n_p
        from bedrax.lax.primitives.shaping import broadcast_in_dim

        results = []
        for branch in branches:
            outs, out_dims = batch_flat(
                lambda *xs, branch=branch: eval_jaxpr(branch, branch.consts, *xs),
                axis,
                operands,
                operand_dims,
            )
            results.append([to_front(x, d, axis.size) for x, d in zip(outs, out_dims, strict=True)])
        which = index
        if len(branches) == 2:
            from bedrax.lax.primitives.elementwise import ne_p

            which = ne_p.bind(index, np.int32(0))
        out = []
        for cases in zip(*results, strict=True):
            out.append(select_n_p.bind(broadcast_in_dim(which, aval_of(cases[0]).shape, (0,)), *cases))
        return out, [0] * len(out)
    found = [batch_jaxpr(b, axis, tuple(operand_dims))[1] for b in branches]
    force = tuple(any(d is not None for d in column) for column in zip(*found, strict=True))
    batched = tuple(batch_jaxpr(b, axis, tuple(operand_dims), force)[0] for b in branches)
    out = cond_p.bind(index, *operands, branches=batched, **params)
    return out, [0 if f else None for f in force]
