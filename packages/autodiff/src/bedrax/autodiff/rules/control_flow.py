"""Differentiation of control flow.

`scan` and `cond` are linearized by splitting their programs: the loop that computes the
results also stacks the residuals, and a second, linear loop consumes them. Residuals that
are inputs already, or that no step changes, are not stacked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from bedrax.autodiff.dependence import dependents
from bedrax.autodiff.holders import pushes_programs
from bedrax.autodiff.linearization import backward_pass, linearize_jaxpr, split_jaxpr, split_rules, transpose_jaxpr
from bedrax.autodiff.tables import (
    UndefinedPrimal,
    Zero,
    add_tangents,
    flags,
    instantiate,
    is_undefined,
    linearize_rules,
    live,
    spread,
    transpose_rules,
)
from bedrax.core import dead_code, staging
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.codes import coded
from bedrax.core.dead_code import kept
from bedrax.core.facts import cached, fact
from bedrax.core.holders import settled
from bedrax.core.ir import Jaxpr, Var, run
from bedrax.core.tables import Use, programs
from bedrax.lax.filling import zeros_of
from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p
from bedrax.lax.primitives.placement import cotangent_type


def _cut(values: Sequence, *sizes: int) -> list:
    """Sections of the given sizes, and the rest."""
    edges = [0, *itertools.accumulate(sizes), len(values)]
    return [values[a:b] for a, b in itertools.pairwise(edges)]


def _not(marks: Iterable[bool]) -> list[bool]:
    return [not m for m in marks]


@cached
def _reorder(jaxpr: Jaxpr, ins: tuple[int, ...]) -> Jaxpr:
    return jaxpr.replace(invars=[jaxpr.invars[i] for i in ins])


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


pushes_programs(scan_p, while_p, cond_p)


# ---- scan


@cached
def _hoistable(primal: Jaxpr, num_consts: int, num_out: int):
    """Split a loop body's new residuals into those that depend on constants alone, and the others.

    Returns:
      (which of the new residuals are loop-invariant, program: consts -> their values or None).
    """
    varies = tuple(i >= num_consts or v.aval.mutable for i, v in enumerate(primal.invars))
    depends = dependents(primal, varies).results
    invariant = tuple(not d for d in depends[num_out:])
    if not any(invariant):
        return invariant, None
    wanted = [False] * num_out + list(invariant)
    pure = primal.replace(eqns=[e for e in primal.eqns if not e.effects])  # effects stay in the loop
    small, _ = dead_code.dce_with(pure, wanted)
    return invariant, Jaxpr(small.invars[:num_consts], small.outvars, small.eqns, small.constvars, small.consts)


def _parts(params: dict) -> tuple:
    """(body, number of constants, of carries, other params, uses) of a scan."""
    rest = dict(params)
    body, num_consts, num_carry = (rest.pop(name) for name in ("jaxpr", "num_consts", "num_carry"))
    return body, num_consts, num_carry, rest, programs[scan_p](params)


def _dependent(use: Use, marks: tuple) -> tuple:
    return dependents(use.program, marks).results


@cached
def _stacking(known: Jaxpr, sources: tuple, num_consts: int, num_carry: int, num_out: int) -> tuple:
    """The loop over `known` that also stacks the residuals of the linear loop.

    Returns:
      (body of the loop, program of the residuals that depend on constants alone or None, for each residual the kind of
      its value and its position among the values of that kind).
    """
    edge = num_consts + num_carry
    invariant, hoisted = _hoistable(known, num_consts, num_out)
    stack_outs: list[Any] = []  # variables to stack, in addition to the results
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
    return dead_code.dce(known.replace(outvars=[*known.outvars[:num_out], *stack_outs])), hoisted, tuple(plan)


def _run_split_scan(known, sources, args, num_consts, num_carry, num_out, params):
    """Run the loop over `known`, stacking the residuals of the linear loop.

    Args:
      known: consts, carry, xs -> carry, ys, new residuals; `num_out` results before those.
      sources: where each residual comes from, in terms of `known`.

    Returns:
      (results, for each residual: (its value, whether it is stacked)).
    """
    loop, hoisted, plan = _stacking(known, sources, num_consts, num_carry, num_out)
    out = _bind_scan(*args, jaxpr=loop, num_consts=num_consts, num_carry=num_carry, **params)
    fixed = run(hoisted, *args[:num_consts]) if hoisted is not None else []
    values = {
        "const": lambda i: (args[i], False),
        "hoisted": lambda i: (fixed[i], False),
        "xs": lambda i: (args[i], True),
        "ys": lambda i: (out[i], True),
        "stacked": lambda i: (out[num_out + i], True),
    }
    return out[:num_out], [values[kind](i) for kind, i in plan]


def _linear_scan(linear, residuals, marked, counts, params):
    """Bind the loop over `linear`: (residuals, marked consts, carry, xs) -> (carry, ys)."""
    values, stacked = [x for x, _ in residuals] + list(marked), [s for _, s in residuals]
    own, rest = _cut(range(len(values)), len(residuals))
    consts, carry, xs = _cut(rest, *counts)
    fixed = kept(own, _not(stacked))
    order = [*fixed, *consts, *carry, *kept(own, stacked), *xs]
    return _bind_scan(
        *(values[i] for i in order),
        jaxpr=_reorder(linear, tuple(order)),
        num_consts=len(fixed) + len(consts),
        num_carry=len(carry),
        **params,
    )


@linearize_rules.rule(scan_p, kind="program")
def _scan_linearize(primals, tangents, **params):
    jaxpr, num_consts, num_carry, params, uses = _parts(params)
    edge = num_consts + num_carry
    num_ys = len(jaxpr.outvars) - num_carry
    linearize_jaxpr(jaxpr, flags(tangents))  # inline, not in a function: deeply nested programs need few frames each
    active, _ = settled(uses, flags(tangents), lambda use, own: linearize_jaxpr(use.program, own).active_out)
    tangents = [instantiate(t) if a else t for t, a in zip(tangents, active, strict=True)]
    lin = linearize_jaxpr(jaxpr, active, (*active[num_consts:edge], *([False] * num_ys)))
    results, residuals = _run_split_scan(lin.primal, lin.sources, primals, num_consts, num_carry, lin.num_out, params)
    if not any(lin.active_out):
        return results, [Zero.of(x) for x in results]
    counts = (sum(active[:num_consts]), sum(active[num_consts:edge]))
    out = _linear_scan(lin.linear, residuals, live(tangents), counts, params)
    return results, spread(out, lin.active_out, results)


@split_rules.rule(scan_p, kind="program")
def _scan_split(tape, prim, args, params):
    """Record the part of a loop that depends on the tape; run the rest now."""
    jaxpr, num_consts, num_carry, rest_params, uses = _parts(params)
    edge = num_consts + num_carry
    marked, _ = settled(uses, [tape.owns(x) for x in args], _dependent)
    num_ys = len(jaxpr.outvars) - num_carry
    parts = split_jaxpr(jaxpr, marked, (*marked[num_consts:edge], *([False] * num_ys)))
    if parts is None:
        return tape.record(scan_p, tuple(args), params)
    known, rest, depends, count = parts
    num_out = len(known.outvars) - count
    in_place = {v: i for i, v in enumerate(known.invars)}
    sources = tuple(("in", in_place[v]) if v in in_place else ("new", k) for k, v in enumerate(known.outvars[num_out:]))
    other = _not(marked)
    results, residuals = _run_split_scan(
        known, sources, kept(args, other), sum(other[:num_consts]), sum(other[num_consts:edge]), num_out, rest_params
    )
    counts = (sum(marked[:num_consts]), sum(marked[num_consts:edge]))
    out = iter(_linear_scan(rest, residuals, kept(args, marked), counts, rest_params))
    others = iter(results)
    return [next(out) if d else next(others) for d in depends]


def _cotangent_types(avals) -> list:
    return [cotangent_type(a.to_tangent_aval().strip_weak_type()) for a in avals]


@cached
def _transposed_body(jaxpr: Jaxpr, linear: tuple, arriving: tuple, num_consts: int, num_carry: int):
    """One step backwards.

    Args:
      linear: which arguments the body is linear in: some constants, the whole carry, some of the xs.
      arriving: which ys have a cotangent.

    Returns:
      The program: (other constants; sums of the linear constants' cotangents, cotangents of the carry; cotangents of
      the ys, other xs) -> (sums, cotangents of the carry; cotangents of the linear xs), and how many sums there are.
    """
    (types, _, x_types), (marks, _, x_marks) = (_cut(xs, num_consts, num_carry) for xs in (jaxpr.in_avals, linear))
    carry_types, y_types = _cut(jaxpr.out_avals, num_carry)
    fixed, moving = kept(types, _not(marks)), kept(x_types, _not(x_marks))
    sums, carry = _cotangent_types(kept(types, marks)), _cotangent_types(carry_types)
    ys = _cotangent_types(kept(y_types, arriving))

    def step(*values):
        own, totals, ct_carry, ct_ys, xs = _cut(values, len(fixed), len(sums), num_carry, len(ys))
        known, given = iter((*own, *xs)), iter(ct_ys)
        args = [UndefinedPrimal(a) if m else next(known) for a, m in zip(jaxpr.in_avals, linear, strict=True)]
        y_cts = [next(given) if a else Zero(cotangent_type(t)) for a, t in zip(arriving, y_types, strict=True)]
        constants, others = _cut(backward_pass(jaxpr, args, [*ct_carry, *y_cts]), len(sums))
        return [instantiate(t) for t in (*map(add_tangents, totals, constants), *others)]

    return staging.program_of(step, [*fixed, *sums, *carry, *ys, *moving]), len(sums)


@transpose_rules.rule(scan_p, kind="program")
def _scan_transpose(cts, *args, jaxpr, num_consts, num_carry, length, reverse, **params):
    """The loop backwards: cotangents of the carry flow back, those of constants add up."""
    undefined = [is_undefined(x) for x in args]
    # The initial carry of a linear loop may be a value (zeros); the loop is linear in it all the same.
    consts, carry, xs = _cut(undefined, num_consts, num_carry)
    linear = (*consts, *[True] * len(carry), *xs)
    ct_carry, ct_ys = _cut(cts, num_carry)
    body, num_sums = _transposed_body(jaxpr, linear, flags(ct_ys), num_consts, num_carry)
    known = [x for x in args[:num_consts] if not is_undefined(x)]
    sums = [zeros_of(a) for a in body.in_avals[len(known) : len(known) + num_sums]]
    moving = [x for x in args[num_consts + num_carry :] if not is_undefined(x)]
    out = iter(
        _bind_scan(
            *known,
            *sums,
            *map(instantiate, ct_carry),
            *live(ct_ys),
            *moving,
            jaxpr=body,
            num_consts=len(known),
            num_carry=num_sums + num_carry,
            length=length,
            reverse=not reverse,
            **params,
        )
    )
    back = [next(out) if m else None for m in linear]
    return [ct if u else None for ct, u in zip(back, undefined, strict=True)]


# ---- while


@split_rules.rule(while_p, kind="program")
def _while_split(tape, prim, args, params):
    """Record the whole loop for the results that depend on the tape; run the rest of it now."""
    cond_nconsts, body_nconsts = params["cond_nconsts"], params["body_nconsts"]
    cond_jaxpr, body_jaxpr = params["cond_jaxpr"], params["body_jaxpr"]
    marked, _ = settled(programs[while_p](params), [tape.owns(x) for x in args], _dependent)
    recorded = tape.record(while_p, args, params)
    cond_marked, consts_marked, carry_marked = _cut(marked, cond_nconsts, body_nconsts)
    cond = dead_code.dce(cond_jaxpr)
    cond_consts, cond_carry = _cut(cond.invars, cond_nconsts)
    tested = {u for e in cond.eqns for u in e.invars}  # also operands of equations with effects
    if all(carry_marked) or any(cond_marked) or not tested.isdisjoint(kept(cond_carry, carry_marked)):
        return recorded
    keep = _not(marked[cond_nconsts:])
    body, _ = dead_code.dce_with(body_jaxpr, _not(carry_marked))
    cond = cond.replace(invars=[*cond_consts, *kept(cond_carry, _not(carry_marked))])
    known = iter(
        while_p.bind(
            *args[:cond_nconsts],
            *kept(args[cond_nconsts:], keep),
            cond_jaxpr=cond,
            cond_nconsts=cond_nconsts,
            body_jaxpr=body.replace(invars=kept(body.invars, keep)),
            body_nconsts=sum(_not(consts_marked)),
        )
    )
    return [r if m else next(known) for r, m in zip(recorded, carry_marked, strict=True)]


@transpose_rules.rule(while_p, kind="error")
def _while_transpose(cts, *args, **_):
    raise ValueError(
        coded(
            "BX-GRAD-LOOP",
            "a loop whose number of rounds is not known when it is traced has no reverse-mode derivative: while_loop,"
            " and fori_loop with traced bounds. Use scan, or fori_loop with known bounds.",
        )
    )


# ---- cond


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
    primal, linear, read = fact(branches[0], (_share_residuals, branches, active), lambda: _share_residuals(lins))
    out = _bind_cond(index, *operands, branches=primal, **params)
    stored = [operands[i] for i in read] + out[n:]
    tangents_out = _bind_cond(index, *stored, *live(tangents[1:]), branches=linear, **params)
    return out[:n], spread(tangents_out, out_active, out[:n])


def _share_residuals(lins):
    """Branches with residual results of the same types, and linear branches that take them.

    Residuals of different branches share positions of equal type; a branch fills the positions
    that it does not use with zeros. The linear branches also take the operands that one of them
    reads: a loop stacks what they take. Also returns the positions of these operands.
    """
    read = sorted({i for lin in lins for kind, i in lin.sources if kind == "in"})
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
            out = run(lin.primal, *args)
            values = lin.residuals(args, out)
            return out[: lin.num_out] + [
                values[by_place[p]] if p in by_place else zeros_of(a) for p, a in enumerate(places)
            ]

        def push(*args, lin=lin, mine=mine):
            taken, stored, moved = _cut(args, len(read), len(places))
            operands = dict(zip(read, taken, strict=True))
            values = [operands[i] if kind == "in" else stored[mine[r]] for r, (kind, i) in enumerate(lin.sources)]
            return run(lin.linear, *values, *moved)

        primal.append(staging.program_of(forward, lin.primal.in_avals))
        tangent_types = lin.linear.in_avals[len(lin.sources) :]
        operand_types = [lin.primal.in_avals[i] for i in read]
        linear.append(staging.program_of(push, [*operand_types, *places, *tangent_types]))
    return tuple(primal), tuple(linear), read


@transpose_rules.rule(cond_p, kind="program")
def _cond_transpose(cts, index, *operands, branches, **params):
    linear = tuple(is_undefined(x) for x in operands)
    arriving = flags(cts)
    programs = [transpose_jaxpr(b, linear, arriving) for b in branches]
    leaving = _union(p[1] for p in programs)
    lin_types = _cotangent_types(kept(branches[0].in_avals, linear))

    def alike(program, mine):
        """The transposed branch, with zeros for cotangents that only other branches return."""

        def full(*args):
            out = iter(run(program, *args))
            every = [next(out) if m else zeros_of(a) for m, a in zip(mine, lin_types, strict=True)]
            return kept(every, leaving)

        return staging.program_of(full, program.in_avals)

    key = (_cond_transpose, branches, linear, arriving)
    transposed = fact(branches[0], key, lambda: tuple(alike(*p) for p in programs))
    known = [x for x in operands if not is_undefined(x)]
    out = iter(_bind_cond(index, *known, *live(cts), branches=transposed, **params))
    here = iter(leaving)
    return [None, *(next(out) if m and next(here) else None for m in linear)]


@split_rules.rule(cond_p, kind="program")
def _cond_split(tape, prim, args, params):
    """Record the part of the branches that depends on the tape; run the rest now."""
    index, *operands = args
    if tape.owns(index):
        return tape.record(cond_p, tuple(args), params)
    branches = params["branches"]
    marked = tuple(tape.owns(x) for x in operands)
    depends = _union(dependents(b, marked).results for b in branches)
    if all(depends):
        return tape.record(cond_p, tuple(args), params)
    rest = {k: v for k, v in params.items() if k != "branches"}
    known = tuple(dead_code.dce_with(b, _not(depends))[0] for b in branches)
    known = tuple(b.replace(invars=kept(b.invars, _not(marked))) for b in known)
    dependent = tuple(dead_code.dce_with(b, depends)[0] for b in branches)
    out = iter(tape.record(cond_p, tuple(args), {**rest, "branches": dependent}))
    others = iter(_bind_cond(index, *kept(operands, _not(marked)), branches=known, **rest))
    return [next(out) if d else next(others) for d in depends]
