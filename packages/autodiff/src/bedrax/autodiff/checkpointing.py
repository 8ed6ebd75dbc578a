"""`checkpoint` (`remat`): intermediate values are computed again in the backward pass instead of being kept.

`plan` turns a policy (`bedrax.autodiff.checkpoint_policies`) into two programs. The first computes the results and the
saved values. The second recomputes the other values and pushes tangents through.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, overload

from bedrax import pytree
from bedrax.autodiff.checkpoint_policies import Offloadable, Recompute, Saveable
from bedrax.autodiff.linearization import LinearizedJaxpr, linearize_jaxpr
from bedrax.autodiff.tables import has_tangent
from bedrax.core import dead_code, passes, source, staging
from bedrax.core.avals import abstractify, aval_of
from bedrax.core.dead_code import kept
from bedrax.core.facts import cached
from bedrax.core.ir import Eqn, Jaxpr, Literal, Var
from bedrax.core.jitting import jit_p
from bedrax.core.names import scopes
from bedrax.core.public import public
from bedrax.core.signatures import Static, leaf_names, normalized, positions_of
from bedrax.core.source import api_boundary
from bedrax.core.typing import ArrayLike, Decorator, P, R
from bedrax.lax.primitives.calls import closed_call_p, core_call_p, name_p, optimization_barrier_p, remat_p
from bedrax.lax.primitives.placement import Memory, reshard_p

__all__ = ["checkpoint", "plan", "print_saved_residuals", "remat", "saved_residuals"]

_logger = logging.getLogger("jax.checkpoint")


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: bool = False,
) -> Callable[P, R]: ...
@overload
def checkpoint(
    *,
    prevent_cse: bool = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: bool = False,
) -> Decorator: ...
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: bool = False,
) -> Any:
    """Recompute a function's intermediate values in the backward pass instead of keeping them.

    Args:
      fun: takes and returns pytrees of arrays. Without it, returns a decorator.
      prevent_cse: keep the compiler from merging the recomputation with the forward pass.
      policy: which intermediate values are kept; see `checkpoint_policies`. Default: none.
      static_argnums, static_argnames: arguments that are passed as they are.

    Returns:
      A function with the same values and derivatives.

    Raises:
      NotImplementedError: `concrete` is set.

    Examples:

      >>> @jax.checkpoint
      ... def layer(x):
      ...     return jnp.sin(jnp.sin(x))
      ...
      >>> jax.grad(layer)(1.)
      Array(0.36003947, dtype=float32, weak_type=True)

      >>> layer = jax.remat(lambda x: jnp.sin(jnp.sin(x)))
      >>> jax.grad(layer)(1.)
      Array(0.36003947, dtype=float32, weak_type=True)
    """
    if concrete:
        raise NotImplementedError(
            public(
                "checkpoint: there is no option 'concrete'. Name arguments that Python code of the function reads in"
                " static_argnums, and compute values eagerly while tracing inside jax.ensure_compile_time_eval()."
            )
        )
    if fun is None:
        return functools.partial(
            checkpoint,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    static = positions_of(static_argnums, "checkpoint: static_argnums")
    names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)

    @functools.wraps(fun)
    @api_boundary
    def checkpointed(*args, **kwargs):
        positions = normalized(static, len(args), "checkpoint: static_argnums") if static else ()
        dynamic = tuple(a for i, a in enumerate(args) if i not in positions)
        fixed = {i: args[i] for i in positions} | {k: v for k, v in kwargs.items() if k in names}
        call = fun if not fixed else _with_static(fun, fixed)
        kwargs = {k: v for k, v in kwargs.items() if k not in names}
        leaves, in_tree = pytree.tree_flatten((dynamic, kwargs))
        program, consts, out_tree = staging.trace_function(call, in_tree, tuple(aval_of(x) for x in leaves))
        out = remat_p.bind(
            *consts, *leaves, jaxpr=program, prevent_cse=prevent_cse, differentiated=False, policy=policy
        )
        return pytree.tree_unflatten(out_tree, out)

    return checkpointed


remat: Final = checkpoint


def _with_static(fun: Callable, fixed: dict[int | str, Any]) -> Callable:
    """`fun` with some arguments fixed, by position or name. Its traces are cached by their values, if hashable."""

    def call(*dynamic, **kwargs):
        rest = iter(dynamic)
        count = len(dynamic) + sum(type(k) is int for k in fixed)
        given = {k: v for k, v in fixed.items() if type(k) is str}
        return fun(*(fixed[i] if i in fixed else next(rest) for i in range(count)), **kwargs, **given)

    role = (checkpoint, tuple((k, Static(v)) for k, v in fixed.items()))
    with contextlib.suppress(TypeError):
        hash(role)
        call.traces_of = (fun, role)
    return call


# ---- the plan


class Plan(NamedTuple):
    """The two programs by which a checkpointed program is differentiated.

    Attributes:
      forward: ``args -> results, saved``.
      recompute_and_push: ``arguments it reads, saved, tangents -> tangents of the active results``; linear in the tangents.
      reads: which arguments `recompute_and_push` takes.
      active_out: which results have a tangent.
      num_out: number of results.
    """

    forward: Jaxpr
    recompute_and_push: Jaxpr
    reads: tuple[bool, ...]
    active_out: tuple[bool, ...]
    num_out: int


def log_plan(split: Plan) -> None:
    """Log the values that a checkpointed function keeps from the forward pass."""
    produced = {v: e for e in split.forward.eqns for v in e.outvars}
    saved = split.forward.outvars[split.num_out :]
    _logger.warning(
        "a checkpointed function saves its arguments %s and %s",
        [a.short() for a in kept(split.forward.in_avals, split.reads)],
        [str(SavedResidual(v.aval, _origin(produced[v]) if v in produced else "of its arguments")) for v in saved],
    )


@cached
def plan(jaxpr: Jaxpr, active: tuple[bool, ...], policy: Callable[..., Any] | None, prevent_cse: bool = True) -> Plan:
    """Split a checkpointed program.

    Args:
      active: which arguments are differentiated.
      policy: which values may be saved; None: only the arguments.
      prevent_cse: recompute behind a barrier, so that the compiler does not merge it with the forward pass.
    """
    if policy is not None:  # policies see into calls
        jaxpr = passes.inline(jaxpr, frozenset({jit_p, closed_call_p, core_call_p}))
    lin = linearize_jaxpr(jaxpr, active)
    answers = {} if policy is None else _answers(lin.primal, policy)
    saved, rerun, reads = _needed(lin, answers)
    away = {v: answers[v] for v in saved if type(answers[v]) is Offloadable}
    forward = _forward(lin, saved, away)
    sources = [*kept(lin.primal.invars, reads), *saved]
    push = _recompute_and_push(lin, sources, away, rerun, prevent_cse)
    return Plan(forward, push, reads, lin.active_out, lin.num_out)


def _answers(primal: Jaxpr, policy: Callable) -> dict[Var, Any]:
    """The variables that may be saved, each with the policy's answer."""
    answers: dict[Var, Any] = {}
    for eqn in primal.eqns:
        answer = policy(eqn.primitive, *(v.aval for v in eqn.invars), **eqn.params)
        if isinstance(answer, Offloadable) or answer is Saveable or (answer is not Recompute and answer):
            answers.update(dict.fromkeys(eqn.outvars, answer))
    return answers


def _needed(lin: LinearizedJaxpr, answers) -> tuple[tuple[Var, ...], list[Eqn], tuple[bool, ...]]:
    """The saved variables, the equations to run again, and which arguments they read.

    The walk back from the residuals stops at saved values.
    """
    produced = {v: e for e in lin.primal.eqns for v in e.outvars}
    seen: set[Var] = set()
    rerun: set[int] = set()
    stack = [v for v in lin.residual_atoms() if type(v) is not Literal]
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        if v not in answers and v in produced and id(produced[v]) not in rerun:
            rerun.add(id(produced[v]))
            stack.extend(u for u in produced[v].invars if type(u) is not Literal)
    saved = tuple(v for e in lin.primal.eqns for v in e.outvars if v in answers and v in seen)
    return saved, [e for e in lin.primal.eqns if id(e) in rerun], tuple(v in seen for v in lin.primal.invars)


def _forward(lin: LinearizedJaxpr, saved, away: dict[Var, Offloadable]) -> Jaxpr:
    """The program that computes the results and the saved values; offloaded values are moved to another memory."""
    moved = {v: Var(v.aval) for v in away}
    moves = [Eqn(reshard_p, [v], [moved[v]], {"to": Memory(where.dst), "src": None}) for v, where in away.items()]
    results = [*lin.primal.outvars[: lin.num_out], *(moved.get(v, v) for v in saved)]
    return dead_code.dce(lin.primal.replace(outvars=results, eqns=[*lin.primal.eqns, *moves]))


def _recompute_and_push(lin: LinearizedJaxpr, sources, away, rerun: list[Eqn], prevent_cse: bool) -> Jaxpr:
    """The program that fetches `sources`, runs `rerun`, and pushes tangents through."""
    primal, linear = lin.primal, lin.linear
    inputs = [Var(v.aval) for v in sources]
    eqns = []
    here = []
    for v, given in zip(sources, inputs, strict=True):
        if v in away:
            fetched = Var(v.aval)
            eqns.append(Eqn(reshard_p, [given], [fetched], {"to": Memory(away[v].src), "src": None}))
            given = fetched
        here.append(given)
    if sources and prevent_cse:
        behind = [Var(v.aval) for v in sources]
        eqns.append(Eqn(optimization_barrier_p, here, behind, {}))
        here = behind
    value: dict[Any, Any] = dict(zip(sources, here, strict=True))

    def read(v):
        return v if type(v) is Literal else value.get(v, v)

    for e in rerun:
        outs = [Var(v.aval) for v in e.outvars]
        where = e.source_info
        where = where and (*where[:2], *scopes(("rematted_computation",), tuple(where[2:])))
        eqns.append(e.replace(invars=[read(v) for v in e.invars], outvars=outs, source_info=where))
        value.update((v, new) for v, new in zip(e.outvars, outs, strict=True) if v not in value)
    residuals = lin.residual_atoms()
    count = len(residuals)
    value.update(zip(linear.invars[:count], [read(v) for v in residuals], strict=True))
    eqns += [e.replace(invars=[read(v) for v in e.invars]) for e in linear.eqns]
    return dead_code.dce(
        Jaxpr(
            [*inputs, *linear.invars[count:]], [read(v) for v in linear.outvars], eqns, primal.constvars, primal.consts
        )
    )


# ---- the saved values


class SavedResidual(NamedTuple):
    """A value that reverse mode keeps from the forward pass: its type, and a description of its origin."""

    aval: Any
    origin: str

    def __str__(self) -> str:
        return f"{self.aval.short()} {self.origin}"


def saved_residuals(fun: Callable[..., Any], *args: ArrayLike, **kwargs: Any) -> list[SavedResidual]:
    """The values that reverse-mode differentiation of ``fun(*args, **kwargs)`` would keep from the forward pass.

    Nothing is computed: the arguments may be anything with a shape and a dtype.
    """
    leaves, in_tree = pytree.tree_flatten((args, kwargs))
    types = [abstractify(x) for x in leaves]
    jaxpr, _ = staging.trace_to_jaxpr(staging.flat_fun(fun, in_tree), types)
    lin = linearize_jaxpr(jaxpr, tuple(a.is_array and has_tangent(a.dtype) for a in types))
    produced = {v: e for e in lin.primal.eqns for v in e.outvars}
    names = leaf_names(fun, in_tree)
    origins = {v: f"from the argument {n}" for v, n in zip(lin.primal.invars, names, strict=True)}
    origins.update((v, "from a constant") for v in lin.primal.constvars)
    atoms = lin.residual_atoms()
    found = [SavedResidual(v.aval, f"that is the number {v.val}") for v in atoms if type(v) is Literal]
    kept = dict.fromkeys(v for v in atoms if type(v) is not Literal)
    inputs = [v for v in lin.primal.invars if v in kept]  # first
    for v in dict.fromkeys((*inputs, *kept)):
        found.append(SavedResidual(v.aval, _origin(produced[v]) if v in produced else origins[v]))
    return found


def _origin(eqn: Eqn) -> str:
    what = f"output of {eqn.primitive.name}"
    if eqn.primitive is name_p:
        what = f"named {eqn.params['name']!r}"
    elif eqn.primitive is jit_p:
        what = f"output of jitted function {eqn.params['name']!r}"
    if not eqn.source_info or eqn.source_info[0] is None:
        return f"{what} from {source.describe(None)}"
    file, line, _, column, _, function = source.position_of(eqn.source_info)
    return f"{what} from {file}:{line}:{column} ({function})"


def print_saved_residuals(f: Callable[..., Any], *args: ArrayLike, **kwargs: Any) -> None:
    """Print what `saved_residuals` returns, one value per line.

    Args:
      f: the function.
      *args, **kwargs: its arguments, anything with a shape and a dtype.

    Examples:

      >>> from jax.ad_checkpoint import print_saved_residuals
      >>> print_saved_residuals(jnp.dot, jnp.ones(3), jnp.ones(3))
      f32[3] from the argument a
      f32[3] from the argument b
    """
    for residual in saved_residuals(f, *args, **kwargs):
        print(residual)
