"""Passes over jaxprs: dead code elimination, splitting by dependence, substitution."""

from __future__ import annotations

from collections.abc import Sequence

from bedrax.core.facts import cached
from bedrax.core.ir import Eqn, Jaxpr, Literal, Var

# `rule(eqn, used_outputs) -> (which inputs are used, new equation or None)`: how to shrink an
# equation whose results are only partly used. Registered by the families that hold programs.
dce_rules: dict = {}


def dce_with(jaxpr: Jaxpr, used: Sequence[bool], keep_inputs: bool = True) -> tuple[Jaxpr, list[bool]]:
    """Remove equations that no used result (and no effect) needs.

    Args:
      used: which results are wanted; the others are dropped.
      keep_inputs: keep arguments that turn out unused.

    Returns:
      (smaller program, which arguments it uses).
    """
    live: set[Var] = {v for v, u in zip(jaxpr.outvars, used, strict=True) if u and type(v) is not Literal}
    kept: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        wanted = [v in live for v in eqn.outvars]
        if not any(wanted) and not eqn.effects:
            continue
        rule = dce_rules.get(eqn.primitive)
        if rule is not None and not all(wanted):
            needed, shrunk = rule(eqn, wanted)
            if shrunk is None:
                continue
            kept.append(shrunk)
            live.update(v for v, n in zip(eqn.invars, needed, strict=True) if n and type(v) is not Literal)
        else:
            kept.append(eqn)
            live.update(v for v in eqn.invars if type(v) is not Literal)
    kept.reverse()
    used_in = [v in live for v in jaxpr.invars]
    constants = [(v, c) for v, c in zip(jaxpr.constvars, jaxpr.consts, strict=True) if v in live]
    return (
        Jaxpr(
            [v for v, u in zip(jaxpr.invars, used_in, strict=True) if u or keep_inputs],
            [v for v, u in zip(jaxpr.outvars, used, strict=True) if u],
            kept,
            [v for v, _ in constants],
            [c for _, c in constants],
            debug_info=jaxpr.debug_info,
        ),
        used_in,
    )


@cached
def dce_for(jaxpr: Jaxpr, used: tuple[bool, ...]) -> tuple[Jaxpr, tuple[bool, ...]]:
    """`dce_with` that also drops unused arguments; cached."""
    smaller, used_in = dce_with(jaxpr, used, keep_inputs=False)
    return smaller, tuple(used_in)


def dce(jaxpr: Jaxpr) -> Jaxpr:
    """The program without equations that nothing needs; same arguments and results."""
    return dce_with(jaxpr, [True] * len(jaxpr.outvars))[0]


@cached
def dependents(jaxpr: Jaxpr, inputs: tuple[bool, ...]) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """What depends on some of the arguments.

    Returns:
      (per equation, per result): whether it depends on an argument marked in `inputs`.
    """
    marked = {v for v, m in zip(jaxpr.invars, inputs, strict=True) if m}
    flags = []
    for eqn in jaxpr.eqns:
        hit = any(v in marked for v in eqn.invars if type(v) is not Literal)
        flags.append(hit)
        if hit:
            marked.update(eqn.outvars)
    return tuple(flags), tuple(v in marked for v in jaxpr.outvars)


@cached
def inline(jaxpr: Jaxpr, chosen: frozenset) -> Jaxpr:
    """The program with the calls of its programs by the `chosen` primitives replaced by their equations.

    Args:
      chosen: primitives whose param `jaxpr` is the program that they apply. A call that says where its
        arguments or results are placed stays.
    """
    if not any(e.primitive in chosen for e in jaxpr.eqns):
        return jaxpr
    eqns: list[Eqn] = []
    constvars, consts = list(jaxpr.constvars), list(jaxpr.consts)
    names: dict = {}  # variables of the program whose equations a call's results became

    def expand(program: Jaxpr, env: dict) -> None:
        def read(atom):
            return atom if type(atom) is Literal else env.get(atom, atom)

        for eqn in program.eqns:
            invars = [read(v) for v in eqn.invars]
            placed = any(eqn.params.get(k) is not None for k in ("in_shardings", "out_shardings"))
            if eqn.primitive not in chosen or placed:
                fresh = [Var(v.aval) for v in eqn.outvars]
                eqns.append(eqn.replace(invars=invars, outvars=fresh))
                env.update(zip(eqn.outvars, fresh, strict=True))
                continue
            inner = eqn.params["jaxpr"]
            below = dict(zip(inner.invars, invars, strict=True))
            for v, c in zip(inner.constvars, inner.consts, strict=True):
                below[v] = Var(v.aval)
                constvars.append(below[v])
                consts.append(c)
            expand(inner, below)
            results = [v if type(v) is Literal else below.get(v, v) for v in inner.outvars]
            env.update(zip(eqn.outvars, results, strict=True))

    expand(jaxpr, names)
    outvars = [v if type(v) is Literal else names.get(v, v) for v in jaxpr.outvars]
    return Jaxpr(jaxpr.invars, outvars, eqns, constvars, consts, debug_info=jaxpr.debug_info)
