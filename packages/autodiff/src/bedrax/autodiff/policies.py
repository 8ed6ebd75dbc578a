"""What `checkpoint` saves and what it recomputes.

A policy is called for every operation of a program: ``policy(prim, *avals, **params)`` says
whether its results may be saved. `plan` turns a policy into two programs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from bedrax import pytree
from bedrax.autodiff.linearize import linearize_jaxpr
from bedrax.core import dead_code, dtypes, passes, source, staging
from bedrax.core.avals import abstractify
from bedrax.core.facts import cached
from bedrax.core.ir import Eqn, Jaxpr, Literal, Var
from bedrax.core.jitting import jit_p
from bedrax.lax.primitives.calls import closed_call_p, core_call_p, name_p, optimization_barrier_p
from bedrax.lax.primitives.markers import to_memory_p


class Saveable:
    """A policy's answer: save the result."""


class Recompute:
    """A policy's answer: recompute the result."""


class Offloadable(NamedTuple):
    """A policy's answer: save the result in another memory space."""

    src: str
    dst: str


class Plan(NamedTuple):
    """How a checkpointed program is differentiated.

    Attributes:
      forward: ``args -> results, saved``.
      recompute_and_push: ``args, saved, tangents -> tangents of the active results``; linear in the tangents.
      active_out: which results have a tangent.
      num_out: number of results.
      saved: variables of the primal program whose values are saved.
    """

    forward: Jaxpr
    recompute_and_push: Jaxpr
    active_out: tuple[bool, ...]
    num_out: int
    saved: tuple[Var, ...]


@cached
def plan(jaxpr: Jaxpr, active: tuple[bool, ...], policy: Callable | None, prevent_cse: bool = True) -> Plan:
    """Split a checkpointed program.

    Args:
      active: which arguments are differentiated.
      policy: what may be saved; None: nothing but the arguments.
      prevent_cse: recompute behind a barrier, so that the compiler does not merge it with the forward pass.
    """
    if policy is not None:  # policies see into calls
        jaxpr = passes.inline(jaxpr, frozenset({jit_p, closed_call_p, core_call_p}))
    lin = linearize_jaxpr(jaxpr, active)
    primal = lin.primal
    places = {"in": primal.invars, "out": primal.outvars, "new": primal.outvars[lin.num_out :]}
    needed = [places[kind][i] for kind, i in lin.sources]
    wanted = {v for v in needed if type(v) is not Literal}
    saveable: set[Var] = set()
    offloaded: dict[Var, Offloadable] = {}
    if policy is not None:
        for eqn in primal.eqns:
            answer = policy(eqn.primitive, *(v.aval for v in eqn.invars), **eqn.params)
            if isinstance(answer, Offloadable):
                offloaded.update(dict.fromkeys(eqn.outvars, answer))
                saveable.update(eqn.outvars)
            elif answer is Saveable or (answer is not Recompute and answer):
                saveable.update(eqn.outvars)
    # What the recomputation reads: walk back from the residuals, stopping at what is saved.
    saved: dict[Var, None] = {}
    produced = {v: e for e in primal.eqns for v in e.outvars}
    rerun: set[int] = set()
    stack = list(wanted)
    seen: set[Var] = set()
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        if v in saveable:
            saved[v] = None
        elif v in produced and id(produced[v]) not in rerun:
            rerun.add(id(produced[v]))
            stack.extend(u for u in produced[v].invars if type(u) is not Literal)
    kept = tuple(v for e in primal.eqns for v in e.outvars if v in saved)
    away = {v: Var(v.aval) for v in kept if v in offloaded}
    moves = [Eqn(to_memory_p, [v], [w], {"kind": offloaded[v].dst}) for v, w in away.items()]
    forward = dead_code.dce(
        primal.replace(
            outvars=[*primal.outvars[: lin.num_out], *(away.get(v, v) for v in kept)],
            eqns=[*primal.eqns, *moves],
        )
    )
    sources = [*primal.invars, *kept]
    inputs = [Var(v.aval) for v in sources]
    behind = [Var(v.aval) for v in sources] if prevent_cse else list(inputs)
    rename = dict(zip(sources, behind, strict=True))
    eqns = []
    here = list(inputs)
    for i, v in enumerate(sources):
        if v in away:
            here[i] = Var(v.aval) if prevent_cse else behind[i]
            back = inputs[i]
            if not prevent_cse:
                inputs[i] = back = Var(v.aval)
            eqns.append(Eqn(to_memory_p, [back], [here[i]], {"kind": offloaded[v].src}))
    if sources and prevent_cse:
        eqns.append(Eqn(optimization_barrier_p, here, behind, {}))

    def read(v: Any):
        return v if type(v) is Literal else rename.get(v, v)

    for e in primal.eqns:
        if id(e) in rerun:
            outs = []
            for v in e.outvars:
                fresh = Var(v.aval)
                outs.append(fresh)
                if v not in saved:
                    rename[v] = fresh
            eqns.append(e.replace(invars=[read(v) for v in e.invars], outvars=outs))
    linear = lin.linear
    count = len(lin.sources)
    values = {v: read(r) for v, r in zip(linear.invars[:count], needed, strict=True)}
    for e in linear.eqns:
        eqns.append(e.replace(invars=[values.get(v, v) if type(v) is not Literal else v for v in e.invars]))
    push = Jaxpr(
        [*inputs, *linear.invars[count:]],
        [values.get(v, v) if type(v) is not Literal else v for v in linear.outvars],
        eqns,
        primal.constvars,
        primal.consts,
    )
    push = dead_code.dce(push)
    return Plan(forward, push, lin.active_out, lin.num_out, kept)


# ---- what is saved


class SavedResidual(NamedTuple):
    """A value that reverse mode keeps from the forward pass: its type, and words that say where it comes from."""

    aval: Any
    origin: str

    def __str__(self):
        return f"{self.aval.str_short()} {self.origin}"


def saved_residuals(fun: Callable, *args, **kwargs) -> list[SavedResidual]:
    """What reverse-mode differentiation of ``fun(*args, **kwargs)`` would keep from the forward pass.

    Nothing is computed: the arguments may be anything with a shape and a dtype.
    """
    leaves, in_tree = pytree.tree_flatten((args, kwargs))
    types = [abstractify(x) for x in leaves]
    jaxpr, _ = staging.trace_to_jaxpr(staging.flat_fun(fun, in_tree), types)
    names = staging.leaf_names(fun, in_tree)
    lin = linearize_jaxpr(jaxpr, tuple(a.is_array and dtypes.is_inexact(a.dtype) for a in types))
    primal = lin.primal
    produced = {v: e for e in primal.eqns for v in e.outvars}
    origins = {v: f"from the argument {n}" for v, n in zip(primal.invars, names, strict=True)}
    origins.update((v, "from a constant") for v in primal.constvars)
    places = {"in": primal.invars, "out": primal.outvars, "new": primal.outvars[lin.num_out :]}
    found: dict[Any, SavedResidual] = {}
    for kind, i in lin.sources:
        atom = places[kind][i]
        if type(atom) is Literal:
            found[len(found)] = SavedResidual(atom.aval, f"that is the number {atom.val}")
            continue
        eqn = produced.get(atom)
        if eqn is None:
            origin = origins[atom]
        else:
            what = (
                f"named {eqn.params['name']!r}"
                if eqn.primitive is name_p
                else f"output of {eqn.primitive.name}"
            )
            if eqn.primitive is jit_p:
                what = f"output of jitted function {eqn.params['name']!r}"
            origin = f"{what} from {source.describe(eqn.source_info)}"
        found[atom] = SavedResidual(atom.aval, origin)
    return list(found.values())


def print_saved_residuals(fun: Callable, *args, **kwargs) -> None:
    """Print what `saved_residuals` returns, one value per line."""
    for residual in saved_residuals(fun, *args, **kwargs):
        print(residual)


# ---- the public policies


def everything_saveable(*_, **__) -> bool:
    """Save every result: no recomputation, as without `checkpoint`."""
    return True


def nothing_saveable(*_, **__) -> bool:
    """Save nothing but the arguments: recompute everything."""
    return False


def dots_saveable(prim, *_, **__) -> bool:
    """Save the results of matrix products and convolutions."""
    return prim.name in ("dot_general", "conv_general_dilated", "ragged_dot_general", "scaled_dot")


def dots_with_no_batch_dims_saveable(prim, *_, **params) -> bool:
    """Save the results of matrix products without batch dimensions."""
    if prim.name != "dot_general":
        return False
    (_, _), (lhs_batch, rhs_batch) = params["dimension_numbers"]
    return not lhs_batch and not rhs_batch


def save_anything_except_these_names(*names_not_to_save: str) -> Callable:
    """Save every named value (`checkpoint_name`) except these, and all that has no name."""
    excluded = frozenset(names_not_to_save)

    def policy(prim, *_, **params):
        return not (prim is name_p and params["name"] in excluded)

    return policy


def save_any_names_but_these(*names_not_to_save: str) -> Callable:
    """Save only named values, except these."""
    excluded = frozenset(names_not_to_save)

    def policy(prim, *_, **params):
        return prim is name_p and params["name"] not in excluded

    return policy


def save_only_these_names(*names_which_can_be_saved: str) -> Callable:
    """Save only the values with these names."""
    chosen: Collection[str] = frozenset(names_which_can_be_saved)

    def policy(prim, *_, **params):
        return prim is name_p and params["name"] in chosen

    return policy


def save_from_both_policies(policy_1: Callable, policy_2: Callable) -> Callable:
    """Save what either policy saves."""

    def policy(prim, *args, **params):
        return policy_1(prim, *args, **params) or policy_2(prim, *args, **params)

    return policy


def save_and_offload_only_these_names(
    *, names_which_can_be_saved, names_which_can_be_offloaded, offload_src: str, offload_dst: str
) -> Callable:
    """Save some named values, offload others to another memory space."""
    saved, offloaded = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    both = saved & offloaded
    if both:
        raise ValueError(
            f"The names should be exclusive and should not intersect in names_which_can_be_saved and names_which_can_be_offloaded. Got intersection: {sorted(both)}"
        )

    def policy(prim, *_, **params):
        if prim is name_p and params["name"] in saved:
            return Saveable
        if prim is name_p and params["name"] in offloaded:
            return Offloadable(offload_src, offload_dst)
        return Recompute

    return policy


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Callable:
    """Offload the results of matrix products without batch dimensions to another memory space."""

    def policy(prim, *_, **params):
        if dots_with_no_batch_dims_saveable(prim, **params):
            return Offloadable(offload_src, offload_dst)
        return Recompute

    return policy


class checkpoint_policies:
    """The policies for ``checkpoint(..., policy=...)``."""

    everything_saveable = staticmethod(everything_saveable)
    nothing_saveable = staticmethod(nothing_saveable)
    dots_saveable = staticmethod(dots_saveable)
    checkpoint_dots = staticmethod(dots_saveable)
    dots_with_no_batch_dims_saveable = staticmethod(dots_with_no_batch_dims_saveable)
    checkpoint_dots_with_no_batch_dims = staticmethod(dots_with_no_batch_dims_saveable)
    offload_dot_with_no_batch_dims = staticmethod(offload_dot_with_no_batch_dims)
    save_anything_except_these_names = staticmethod(save_anything_except_these_names)
    save_any_names_but_these = staticmethod(save_any_names_but_these)
    save_only_these_names = staticmethod(save_only_these_names)
    save_from_both_policies = staticmethod(save_from_both_policies)
    save_and_offload_only_these_names = staticmethod(save_and_offload_only_these_names)
