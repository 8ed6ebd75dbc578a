"""Differentiation of control flow.

`scan` and `cond` are linearized by splitting their programs: the loop that computes the
results also stacks the residuals, and a second, linear loop consumes them. Residuals that
are inputs already, or that no step changes, are not stacked.
"""

from __future__ import annotations

from collections.abc import Sequence

from bedrax.autodiff.forward import jvp_jaxpr
from bedrax.autodiff.linearization import backward_pass, linearize_jaxpr, split_jaxpr, transpose_jaxpr
from bedrax.autodiff.tables import (
    UndefinedPrimal,
    Zero,
    add_tangents,
    flags,
    instantiate,
    is_undefined,
    jvp_rules,
    linearize_rules,
    live,
    split_rules,
    spread,
    transpose_rules,
)
from bedrax.core import dead_code, passes, staging
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.dead_code import kept
from bedrax.core.facts import cached, fact
from bedrax.core.ir import Jaxpr, Var, eval_jaxpr
from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p
from bedrax.lax.primitives.shaping import zeros_of


def _reorder(jaxpr: Jaxpr, ins: Sequence[int], outs: Sequence[int]) -> Jaxpr:
    return jaxpr.replace(invars=[jaxpr.invars[i] for i in ins], outvars=[jaxpr.outvars[i] for i in outs])


# Programs derived by users' rules hold the tracers that the rules close over; they become arguments.


def _bind_scan(*args, jaxpr, num_consts, **params) -> list:
    program, consts = staging.close_over(jaxpr, every=False)
    return scan_p.bind(*consts, *args, jaxpr=program, num_consts=num_consts + len(consts), **params)


def _bind_cond(index, *operands, branches, **params) -> list:
    closed = [staging.close_over(b, every=False) for b in branches]
    consts = [c for _, values in closed for c in values]
    if not consts:
        return cond_p.bind(index, *operands, branches=branches, **params)
    programs = []
    for k, (program, values) in enumerate(closed):
        before, after = ([c for _, vs in part for c in vs] for part in (closed[:k], closed[k + 1 :]))
        n = len(values)
        unused = lambda xs: [Var(aval_of(x)) for x in xs]
        invars = [*unused(before), *program.invars[:n], *unused(after), *program.invars[n:]]
        programs.append(program.replace(invars=invars))
    return cond_p.bind(index, *consts, *operands, branches=tuple(programs), **params)


# ---- scan


def _active_carry(jaxpr, active, num_consts, num_carry, outs_active):
    """The smallest set of active carries that contains the given ones and is closed under the body."""
    active = list(active)
    while True:
        found = outs_active(tuple(active))
        grown = [
            a or f
            for a, f in zip(active[num_consts : num_consts + num_carry], found[:num_carry], strict=True)
        ]
        if grown == active[num_consts : num_consts + num_carry]:
            return tuple(active)
        active[num_consts : num_consts + num_carry] = grown


def _with_carry(tangents, active, num_consts, num_carry):
    """Tangents in which the active carries are values."""
    edge = num_consts + num_carry
    return [
        instantiate(t) if num_consts <= i < edge and a else t
        for i, (t, a) in enumerate(zip(tangents, active, strict=True))
    ]


@jvp_rules.rule(scan_p, kind="program")
def _scan_jvp(primals, tangents, *, jaxpr, num_consts, num_carry, **params):
    edge, total = num_consts + num_carry, len(primals)
    active = _active_carry(jaxpr, flags(tangents), num_consts, num_carry, lambda a: jvp_jaxpr(jaxpr, a)[1])
    tangents = _with_carry(tangents, active, num_consts, num_carry)
    num_ys = len(jaxpr.outvars) - num_carry
    force = (*active[num_consts:edge], *([False] * num_ys))
    pushed, out_active = jvp_jaxpr(jaxpr, active, force)
    place = {}  # position of each active argument's tangent
    for i, a in enumerate(active):
        if a:
            place[i] = total + len(place)
    ins: list[int] = []
    for start, stop in ((0, num_consts), (num_consts, edge), (edge, total)):
        ins += [*range(start, stop), *(place[i] for i in range(start, stop) if active[i])]
    out_place = {}
    for i, a in enumerate(out_active):
        if a:
            out_place[i] = len(out_active) + len(out_place)
    outs: list[int] = []
    for start, stop in ((0, num_carry), (num_carry, len(out_active))):
        outs += [*range(start, stop), *(out_place[i] for i in range(start, stop) if out_active[i])]
    args: list = []
    for start, stop in ((0, num_consts), (num_consts, edge), (edge, total)):
        args += [*primals[start:stop], *live(tangents[start:stop])]
    out = _bind_scan(
        *args, jaxpr=_reorder(pushed, ins, outs), num_consts=num_consts + sum(active[:num_consts]),
        num_carry=num_carry + sum(active[num_consts:edge]), **params,
    )  # fmt: skip
    back = dict(zip(outs, out, strict=True))
    results = [back[i] for i in range(len(out_active))]
    return results, spread([back[out_place[i]] for i in sorted(out_place)], out_active, results)


@cached
def _hoistable(primal: Jaxpr, num_consts: int, num_out: int):
    """Split a loop body's new residuals into those that only constants determine, and the others.

    Returns:
      (which of the new residuals are loop-invariant, program: consts -> their values or None).
    """
    varies = (False,) * num_consts + (True,) * (len(primal.invars) - num_consts)
    _, depends = passes.dependents(primal, varies)
    invariant = tuple(not d for d in depends[num_out:])
    if not any(invariant):
        return invariant, None
    wanted = [False] * num_out + list(invariant)
    pure = primal.replace(eqns=[e for e in primal.eqns if not e.effects])  # effects stay in the loop
    small, _ = dead_code.dce_with(pure, wanted)
    return invariant, Jaxpr(
        small.invars[:num_consts], small.outvars, small.eqns, small.constvars, small.consts
    )


def _run_split_scan(known, sources, args, num_consts, num_carry, num_out, params):
    """Run the loop over `known`, stacking what the linear loop needs.

    Args:
      known: consts, carry, xs -> carry, ys, new residuals; `num_out` results before those.
      sources: where each residual comes from, in terms of `known`.

    Returns:
      (results, for each residual: (its value, whether it is stacked)).
    """
    edge = num_consts + num_carry
    invariant, hoisted = _hoistable(known, num_consts, num_out)
    stack_outs: list = []  # variables to stack, besides the results
    plan = []
    hoist_index = {k: n for n, k in enumerate(k for k, inv in enumerate(invariant) if inv)}
    for kind, i in sources:
        if kind == "in" and i < num_consts:
            plan.append(("const", i))
        elif kind == "in" and i >= edge:
            plan.append(("xs", i))
        elif kind == "out" and i >= num_carry:
            plan.append(("ys", i))
        elif kind == "new" and invariant[i]:
            plan.append(("hoisted", hoist_index[i]))
        else:
            var = known.invars[i] if kind == "in" else known.outvars[i if kind == "out" else num_out + i]
            plan.append(("stacked", len(stack_outs)))
            stack_outs.append(var)
    loop = dead_code.dce(known.replace(outvars=[*known.outvars[:num_out], *stack_outs]))
    out = _bind_scan(*args, jaxpr=loop, num_consts=num_consts, num_carry=num_carry, **params)
    fixed = eval_jaxpr(hoisted, hoisted.consts, *args[:num_consts]) if hoisted is not None else []
    values = {
        "const": lambda i: (args[i], False), "hoisted": lambda i: (fixed[i], False), "xs": lambda i: (args[i], True),
        "ys": lambda i: (out[i], True), "stacked": lambda i: (out[num_out + i], True),
    }  # fmt: skip
    return out[:num_out], [values[kind](i) for kind, i in plan]


def _linear_scan(linear, residuals, marked, counts, params):
    """Bind the loop over `linear`: (residuals, marked consts, carry, xs) -> (carry, ys)."""
    num_consts, num_carry, num_xs = counts
    n = len(residuals)
    fixed = [i for i, (_, stacked) in enumerate(residuals) if not stacked]
    moving = [i for i, (_, stacked) in enumerate(residuals) if stacked]
    consts = range(n, n + num_consts)
    carry = range(n + num_consts, n + num_consts + num_carry)
    xs = range(n + num_consts + num_carry, n + num_consts + num_carry + num_xs)
    order = [*fixed, *consts, *carry, *moving, *xs]
    all_args = [value for value, _ in residuals] + list(marked)
    return _bind_scan(
        *(all_args[i] for i in order), jaxpr=_reorder(linear, order, range(len(linear.outvars))),
        num_consts=len(fixed) + num_consts, num_carry=num_carry, **params,
    )  # fmt: skip


@linearize_rules.rule(scan_p, kind="program")
def _scan_linearize(primals, tangents, *, jaxpr, num_consts, num_carry, **params):
    edge = num_consts + num_carry
    num_ys = len(jaxpr.outvars) - num_carry
    active = _active_carry(
        jaxpr, flags(tangents), num_consts, num_carry, lambda a: linearize_jaxpr(jaxpr, a).active_out
    )
    tangents = _with_carry(tangents, active, num_consts, num_carry)
    lin = linearize_jaxpr(jaxpr, active, (*active[num_consts:edge], *([False] * num_ys)))
    results, residuals = _run_split_scan(
        lin.primal, lin.sources, primals, num_consts, num_carry, lin.num_out, params
    )
    if not any(lin.active_out):
        return results, [Zero.of(x) for x in results]
    counts = (sum(active[:num_consts]), sum(active[num_consts:edge]), sum(active[edge:]))
    out = _linear_scan(lin.linear, residuals, live(tangents), counts, params)
    return results, spread(out, lin.active_out, results)


@split_rules.rule(scan_p, kind="program")
def _scan_split(tape, args, params):
    """Record the part of a loop that depends on the tape; run the rest now."""
    jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    rest_params = {k: v for k, v in params.items() if k not in ("jaxpr", "num_consts", "num_carry")}
    edge = num_consts + num_carry
    marked = _active_carry(
        jaxpr,
        tuple(tape.owns(x) for x in args),
        num_consts,
        num_carry,
        lambda m: passes.dependents(jaxpr, m)[1],
    )
    num_ys = len(jaxpr.outvars) - num_carry
    parts = split_jaxpr(jaxpr, marked, (*marked[num_consts:edge], *([False] * num_ys)))
    if parts is None:
        return tape.record(scan_p, tuple(args), params)
    known, rest, depends, count = parts
    num_out = len(known.outvars) - count
    in_place = {v: i for i, v in enumerate(known.invars)}
    sources = tuple(
        ("in", in_place[v]) if v in in_place else ("new", k) for k, v in enumerate(known.outvars[num_out:])
    )
    other = [not m for m in marked]
    results, residuals = _run_split_scan(
        known,
        sources,
        kept(args, other),
        sum(other[:num_consts]),
        sum(other[num_consts:edge]),
        num_out,
        rest_params,
    )
    counts = (sum(marked[:num_consts]), sum(marked[num_consts:edge]), sum(marked[edge:]))
    out = iter(_linear_scan(rest, residuals, kept(args, marked), counts, rest_params))
    others = iter(results)
    return [next(out) if d else next(others) for d in depends]


@transpose_rules.rule(scan_p, kind="program")
def _scan_transpose(cts, *args, jaxpr, num_consts, num_carry, length, reverse, **params):
    """The loop backwards: cotangents of the carry flow back, those of constants add up."""
    edge = num_consts + num_carry
    linear = [is_undefined(x) for x in args]
    # The initial carry of a linear loop may be a value (zeros); the loop is linear in it all the same.
    in_linear = [*linear[:num_consts], *([True] * num_carry), *linear[edge:]]
    carry_types = [a.to_tangent_aval().strip_weak_type() for a in jaxpr.out_avals[:num_carry]]
    ct_carry = [instantiate(ct) for ct in cts[:num_carry]]
    arriving = flags(cts[num_carry:])
    lin_consts = [a for a, m in zip(jaxpr.in_avals[:num_consts], in_linear[:num_consts], strict=True) if m]
    res_consts = [
        a for a, m in zip(jaxpr.in_avals[:num_consts], in_linear[:num_consts], strict=True) if not m
    ]
    lin_xs = [a for a, m in zip(jaxpr.in_avals[edge:], in_linear[edge:], strict=True) if m]
    res_xs = [a for a, m in zip(jaxpr.in_avals[edge:], in_linear[edge:], strict=True) if not m]
    y_types = [a.to_tangent_aval().strip_weak_type() for a in kept(jaxpr.out_avals[num_carry:], arriving)]
    sum_types = [a.to_tangent_aval().strip_weak_type() for a in lin_consts]

    def step(*values):
        at = iter(values)
        fixed = [next(at) for _ in res_consts]
        sums = [next(at) for _ in lin_consts]
        carry = [next(at) for _ in carry_types]
        ys = [next(at) for _ in y_types]
        moving = [next(at) for _ in res_xs]
        given, moved = iter(fixed), iter(moving)
        body_args = (
            [
                UndefinedPrimal(a) if m else next(given)
                for a, m in zip(jaxpr.in_avals[:num_consts], in_linear[:num_consts], strict=True)
            ]
            + [UndefinedPrimal(a) for a in jaxpr.in_avals[num_consts:edge]]
            + [
                UndefinedPrimal(a) if m else next(moved)
                for a, m in zip(jaxpr.in_avals[edge:], in_linear[edge:], strict=True)
            ]
        )
        y = iter(ys)
        y_cts = [
            next(y) if a else Zero(t) for a, t in zip(arriving, jaxpr.out_avals[num_carry:], strict=True)
        ]
        back = backward_pass(jaxpr, body_args, [*carry, *y_cts])
        n = len(lin_consts)
        new_sums = [instantiate(add_tangents(s, b)) for s, b in zip(sums, back[:n], strict=True)]
        return [*new_sums, *map(instantiate, back[n:])]

    step_types = [*res_consts, *sum_types, *carry_types, *y_types, *res_xs]
    key = ("transposed scan", tuple(in_linear), arriving, num_consts, num_carry)
    found = fact(jaxpr, key, lambda: staging.program_of(step, step_types))
    sums = [instantiate(Zero(a)) for a in sum_types]
    const_args = [x for x, m in zip(args[:num_consts], in_linear[:num_consts], strict=True) if not m]
    x_args = [x for x, m in zip(args[edge:], in_linear[edge:], strict=True) if not m]
    out = _bind_scan(
        *const_args, *sums, *ct_carry, *live(cts[num_carry:]), *x_args, jaxpr=found, num_consts=len(const_args),
        num_carry=len(sums) + num_carry, length=length, reverse=not reverse, **params,
    )  # fmt: skip
    ct_consts, ct_init, ct_xs = (
        iter(out[: len(sums)]),
        out[len(sums) : len(sums) + num_carry],
        iter(out[len(sums) + num_carry :]),
    )
    assert len(lin_xs) == len(out) - len(sums) - num_carry
    return (
        [next(ct_consts) if m else None for m in linear[:num_consts]]
        + [ct if m else None for ct, m in zip(ct_init, linear[num_consts:edge], strict=True)]
        + [next(ct_xs) if m else None for m in linear[edge:]]
    )


# ---- while


@jvp_rules.rule(while_p, kind="program")
def _while_jvp(primals, tangents, *, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    edge = cond_nconsts + body_nconsts
    num_carry = len(primals) - edge
    body_tangents = tangents[cond_nconsts:]
    active = _active_carry(
        body_jaxpr, flags(body_tangents), body_nconsts, num_carry, lambda a: jvp_jaxpr(body_jaxpr, a)[1]
    )
    body_tangents = _with_carry(body_tangents, active, body_nconsts, num_carry)
    pushed, _ = jvp_jaxpr(body_jaxpr, active, active[body_nconsts:])
    n = len(active)
    const_place = range(n, n + sum(active[:body_nconsts]))
    carry_place = range(n + sum(active[:body_nconsts]), n + sum(active))
    ins = [*range(body_nconsts), *const_place, *range(body_nconsts, n), *carry_place]
    body = _reorder(pushed, ins, range(len(pushed.outvars)))
    cond = cond_jaxpr.replace(
        invars=[
            *cond_jaxpr.invars,
            *(_dead_inputs(cond_jaxpr, kept(pushed.in_avals[body_nconsts:n], active[body_nconsts:]))),
        ]
    )
    out = while_p.bind(
        *primals[:edge], *live(body_tangents[:body_nconsts]), *primals[edge:], *live(body_tangents[body_nconsts:]),
        cond_jaxpr=cond, cond_nconsts=cond_nconsts, body_jaxpr=body, body_nconsts=body_nconsts + len(const_place),
    )  # fmt: skip
    return out[:num_carry], spread(out[num_carry:], active[body_nconsts:], out[:num_carry])


def _dead_inputs(jaxpr: Jaxpr, types) -> list:
    return [Var(a.to_tangent_aval()) for a in types]


@linearize_rules.rule(while_p, kind="program")
def _while_linearize(primals, tangents, **params):
    """Results now (see `_while_split`); tangents by a loop that computes both, since nothing bounds the residuals."""
    return _while_jvp(primals, tangents, **params)


@split_rules.rule(while_p, kind="program")
def _while_split(tape, args, params):
    """Record the whole loop for what depends on the tape; run the rest of it now."""
    cond_nconsts, body_nconsts = params["cond_nconsts"], params["body_nconsts"]
    cond_jaxpr, body_jaxpr = params["cond_jaxpr"], params["body_jaxpr"]
    edge = cond_nconsts + body_nconsts
    num_carry = len(args) - edge
    marked = _active_carry(
        body_jaxpr, tuple(tape.owns(x) for x in args[cond_nconsts:]), body_nconsts, num_carry,
        lambda m: passes.dependents(body_jaxpr, m)[1],
    )  # fmt: skip
    recorded = tape.record(while_p, tuple(args), params)
    carry_marked = marked[body_nconsts:]
    if all(carry_marked):
        return recorded
    if any(tape.owns(x) for x in args[:cond_nconsts]) or any(
        m and v in {u for e in cond_jaxpr.eqns for u in e.invars}
        for m, v in zip(carry_marked, cond_jaxpr.invars[cond_nconsts:], strict=True)
    ):
        return recorded
    body, _ = dead_code.dce_with(body_jaxpr, [not m for m in carry_marked])
    keep = [not m for m in marked[:body_nconsts]] + [not m for m in carry_marked]
    known_body = body.replace(invars=kept(body.invars, keep))
    known_cond = cond_jaxpr.replace(
        invars=[
            *cond_jaxpr.invars[:cond_nconsts],
            *kept(cond_jaxpr.invars[cond_nconsts:], [not m for m in carry_marked]),
        ]
    )
    known = iter(
        while_p.bind(
            *args[:cond_nconsts],
            *kept(args[cond_nconsts:], keep),
            cond_jaxpr=known_cond,
            cond_nconsts=cond_nconsts,
            body_jaxpr=known_body,
            body_nconsts=sum(keep[:body_nconsts]),
        )
    )
    return [r if m else next(known) for r, m in zip(recorded, carry_marked, strict=True)]


@transpose_rules.rule(while_p, kind="error")
def _while_transpose(cts, *args, **_):
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic start/stop values."
        " Try using lax.scan, or using fori_loop with static start/stop."
    )


# ---- cond


@jvp_rules.rule(cond_p, kind="program")
def _cond_jvp(primals, tangents, *, branches, **params):
    index, *operands = primals
    active = flags(tangents[1:])
    out_active = _union(jvp_jaxpr(b, active)[1] for b in branches)
    pushed = tuple(jvp_jaxpr(b, active, out_active)[0] for b in branches)
    out = _bind_cond(index, *operands, *live(tangents[1:]), branches=pushed, **params)
    n = len(out_active)
    return out[:n], spread(out[n:], out_active, out[:n])


def _union(rows) -> tuple[bool, ...]:
    return tuple(any(column) for column in zip(*rows, strict=True))


@linearize_rules.rule(cond_p, kind="program")
def _cond_linearize(primals, tangents, *, branches, **params):
    index, *operands = primals
    active = flags(tangents[1:])
    out_active = _union(linearize_jaxpr(b, active).active_out for b in branches)
    lins = [linearize_jaxpr(b, active, out_active) for b in branches]
    n = lins[0].num_out
    if not any(out_active):
        out = _bind_cond(index, *operands, branches=tuple(branches), **params)
        return out, [Zero.of(x) for x in out]
    key = ("linearized cond", tuple(branches), active)
    primal, linear = fact(branches[0], key, lambda: _share_residuals(lins))
    out = _bind_cond(index, *operands, branches=primal, **params)
    tangents_out = _bind_cond(index, *operands, *out[n:], *live(tangents[1:]), branches=linear, **params)
    return out[:n], spread(tangents_out, out_active, out[:n])


def _share_residuals(lins):
    """Branches with residual results of the same types, and linear branches that take them.

    Residuals of different branches share places of equal type; a branch fills the places that
    it does not use with zeros. The linear branches also take the operands.
    """
    places: list[ShapedArray] = []
    assigned = []
    for lin in lins:
        taken: set[int] = set()
        mine: dict[int, int] = {}
        for r, (kind, _) in enumerate(lin.sources):
            if kind == "in":
                continue
            aval = lin.linear.invars[r].aval
            spot = next((p for p, a in enumerate(places) if a == aval and p not in taken), None)
            if spot is None:
                spot = len(places)
                places.append(aval)
            taken.add(spot)
            mine[r] = spot
        assigned.append(mine)
    primal, linear = [], []
    for lin, mine in zip(lins, assigned, strict=True):
        by_place = {p: r for r, p in mine.items()}

        def forward(*args, lin=lin, by_place=by_place):
            out = eval_jaxpr(lin.primal, lin.primal.consts, *args)
            values = lin.residuals(args, out)
            return out[: lin.num_out] + [
                values[by_place[p]] if p in by_place else zeros_of(a) for p, a in enumerate(places)
            ]

        def push(*args, lin=lin, mine=mine):
            num_in = len(lin.primal.invars)
            operands, stored, tangents = (
                args[:num_in],
                args[num_in : num_in + len(places)],
                args[num_in + len(places) :],
            )
            values = [
                operands[i] if kind == "in" else stored[mine[r]] for r, (kind, i) in enumerate(lin.sources)
            ]
            return eval_jaxpr(lin.linear, lin.linear.consts, *values, *tangents)

        primal.append(staging.program_of(forward, lin.primal.in_avals))
        tangent_types = lin.linear.in_avals[len(lin.sources) :]
        linear.append(staging.program_of(push, [*lin.primal.in_avals, *places, *tangent_types]))
    return tuple(primal), tuple(linear)


@transpose_rules.rule(cond_p, kind="program")
def _cond_transpose(cts, index, *operands, branches, **params):
    linear = tuple(is_undefined(x) for x in operands)
    arriving = flags(cts)
    programs = [transpose_jaxpr(b, linear, arriving) for b in branches]
    leaving = _union(p[1] for p in programs)
    lin_types = [a.to_tangent_aval().strip_weak_type() for a in kept(branches[0].in_avals, linear)]

    def settle(program, mine):
        def full(*args):
            out = iter(eval_jaxpr(program, program.consts, *args))
            return [
                next(out) if m else zeros_of(a)
                for m, wanted, a in zip(mine, leaving, lin_types, strict=True)
                if wanted
            ]

        return staging.program_of(full, program.in_avals)

    key = ("transposed cond", tuple(branches), linear, arriving)
    found = fact(branches[0], key, lambda: tuple(settle(*p) for p in programs))
    others = [x for x in operands if not is_undefined(x)]
    out = iter(_bind_cond(index, *others, *live(cts), branches=found, **params))
    here = iter(leaving)
    return [None, *(next(out) if m and next(here) else None for m in linear)]


@split_rules.rule(cond_p, kind="program")
def _cond_split(tape, args, params):
    """Record the part of the branches that depends on the tape; run the rest now."""
    index, *operands = args
    if tape.owns(index):
        return tape.record(cond_p, tuple(args), params)
    branches = params["branches"]
    marked = tuple(tape.owns(x) for x in operands)
    depends = _union(passes.dependents(b, marked)[1] for b in branches)
    if all(depends):
        return tape.record(cond_p, tuple(args), params)
    rest = {k: v for k, v in params.items() if k != "branches"}
    wanted = tuple(not d for d in depends)
    known = tuple(dead_code.dce_with(b, wanted)[0] for b in branches)
    known = tuple(b.replace(invars=kept(b.invars, [not m for m in marked])) for b in known)
    dependent = tuple(dead_code.dce_with(b, depends)[0] for b in branches)
    out = iter(tape.record(cond_p, tuple(args), {**rest, "branches": dependent}))
    others = iter(_bind_cond(index, *kept(operands, [not m for m in marked]), branches=known, **rest))
    return [next(out) if d else next(others) for d in depends]
