"""Loops and branches over programs with references: what they write is carried, or is a further result."""

from __future__ import annotations

from bedrax.core.ir import Var
from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p
from bedrax.state.discharge import discharged, identity
from bedrax.state.primitives import write_whole
from bedrax.state.rules.calls import values_of, write_back
from bedrax.state.tables import discharge_rules
from bedrax.state.types import Ref


def _split(values, flags) -> tuple[list, list]:
    """Those whose position is not in `flags`, and those whose is."""
    return [v for i, v in enumerate(values) if i not in flags], [values[i] for i in flags]


def _no_references(what: str, values) -> None:
    for x in values:
        if isinstance(x, Ref):
            raise ValueError(
                f"{what} is a reference of type {x.aval.short()}: references are no data that a loop hands on. Let the"
                " function close over the reference."
            )


@discharge_rules.rule(scan_p)
def _scan(*args, jaxpr, num_consts, num_carry, **params):
    _no_references("the carry, or what is scanned over,", args[num_consts:])
    program, written = discharged(jaxpr)
    count = len(jaxpr.outvars)
    invars, finals = program.invars, program.outvars[count:]
    consts, moved = _split(invars[:num_consts], written)
    program = program.replace(
        invars=[*consts, *moved, *invars[num_consts:]], outvars=[*finals, *program.outvars[:count]]
    )
    values = values_of(args)
    kept, first = _split(values[:num_consts], written)
    out = scan_p.bind(
        *kept, *first, *values[num_consts:], jaxpr=program, num_consts=len(kept), num_carry=len(written) + num_carry,
        **params,
    )  # fmt: skip
    write_back(args, written, out[: len(written)])
    return out[len(written) :]


@discharge_rules.rule(while_p)
def _while(*args, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    edge = cond_nconsts + body_nconsts
    _no_references("the value of the loop", args[edge:])
    cond, cond_written = discharged(cond_jaxpr)
    if cond_written:
        raise ValueError("the condition of a while_loop writes to a reference; it may be read there only")
    body, written = discharged(body_jaxpr)
    cond_refs, body_refs = args[:cond_nconsts], args[cond_nconsts:edge]
    names = [identity(body_refs[i]) for i in written]
    # What the body writes and the condition reads is one value that is carried.
    read = {names.index(identity(x)): i for i, x in enumerate(cond_refs) if isinstance(x, Ref) and identity(x) in names}
    cond_kept, _ = _split(cond.invars[:cond_nconsts], list(read.values()))
    body_kept, moved = _split(body.invars[:body_nconsts], written)
    seen = [cond.invars[read[n]] if n in read else Var(v.aval) for n, v in enumerate(moved)]
    cond = cond.replace(invars=[*cond_kept, *seen, *cond.invars[cond_nconsts:]])
    count = len(body_jaxpr.outvars)
    finals = body.outvars[count:]
    body = body.replace(
        invars=[*body_kept, *moved, *body.invars[body_nconsts:]], outvars=[*finals, *body.outvars[:count]]
    )
    cond_values, _ = _split(values_of(cond_refs), list(read.values()))
    body_values, first = _split(values_of(body_refs), written)
    out = while_p.bind(
        *cond_values, *body_values, *first, *args[edge:], cond_jaxpr=cond, cond_nconsts=len(cond_kept),
        body_jaxpr=body, body_nconsts=len(body_kept),
    )  # fmt: skip
    write_back(body_refs, written, out[: len(written)])
    return out[len(written) :]


@discharge_rules.rule(cond_p)
def _cond(index, *args, branches, **params):
    pure = [discharged(b) for b in branches]
    written = sorted({i for p in pure for i in p.written})
    programs = []
    for branch, (program, own) in zip(branches, pure, strict=True):
        count = len(branch.outvars)
        last = dict(zip(own, program.outvars[count:], strict=True))
        finals = [last.get(i, program.invars[i]) for i in written]
        programs.append(program.replace(outvars=[*program.outvars[:count], *finals]))
    out = cond_p.bind(index, *values_of(args), branches=tuple(programs), **params)
    count = len(branches[0].outvars)
    for i, value in zip(written, out[count:], strict=True):
        write_whole(args[i], value)
    return out[:count]
