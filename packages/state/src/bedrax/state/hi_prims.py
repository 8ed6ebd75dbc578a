"""Operations of libraries with their own rules (`jax.experimental.hijax.HiPrim`).

A library derives a class from `HiPrim`; an object of it is one operation with its parameters and types. A call binds
`hi_call_p` to the arguments; its parameter `prim` is that object. Each column calls a method of the object as its rule.

Needed by Flax (`nnx.variablelib`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from bedrax import pytree
from bedrax.autodiff.accumulators import GradAccum, NullAccum, ValAccum
from bedrax.autodiff.forward import jvp_flat
from bedrax.autodiff.linearization import Tape
from bedrax.autodiff.tables import Zero, is_undefined, jvp_rules, linearize_rules, transpose_rules
from bedrax.batching.tables import batch_rules
from bedrax.batching.trace import batch_flat
from bedrax.core.dead_code import dead_code_rules
from bedrax.core.ir import run
from bedrax.core.objects import MappingSpec
from bedrax.core.staging import stage_rules
from bedrax.core.tables import effect_rules, print_rules, represent_rules
from bedrax.core.tracing import Primitive, Tracer, current, entered
from bedrax.lax.primitives import custom_rules
from bedrax.lax.tables import decompositions
from bedrax.parallel import explicit
from bedrax.state.hi_batches import Batched, bdims_at_front, spread, unmap_avals, vmap_rule
from bedrax.state.hi_operations import (
    HiPrim,
    RefAccum,
    Residuals,
    VJPHiPrimitive,
    as_tangent,
    hi_call_p,
    instantiate_zeros,
    is_zero,
    kept,
    opened,
    restored,
)

__all__ = [
    "GradAccum",
    "HiPrim",
    "MappingSpec",
    "NullAccum",
    "RefAccum",
    "VJPHiPrimitive",
    "ValAccum",
    "bdims_at_front",
    "instantiate_zeros",
    "jvp_from_lin",
    "linearize_from_jvp",
    "unmap_avals",
    "vjp_from_jvp",
    "vjp_from_lin",
    "vmap_rule",
]


# ---- the rules of a call. params: prim (a HiPrim)


@hi_call_p.abstract
def _types(*avals, prim):
    return list(prim.outputs.avals)


@hi_call_p.def_impl
def _expand(*values, prim: HiPrim) -> list:
    out = prim.expand(*prim.in_tree.unflatten(values))
    return prim.outputs.leaves(out, f"the result of {type(prim).__name__}.expand")


decompositions.add(hi_call_p, _expand)
represent_rules.add(hi_call_p, _expand)
effect_rules.add(hi_call_p, lambda *avals, prim: prim.effects)
print_rules.add(hi_call_p, lambda params: {"prim": params["prim"]})


@stage_rules.rule(hi_call_p)
def _stage(trace, prim, args, params):
    hi = params["prim"]
    if not hi.has_rules("staging"):
        if not current.varying or any(isinstance(x, Tracer) for x in args):
            return trace.record(prim, args, params)
        saved, current.varying = current.varying, frozenset()  # what an operation reads of constants does not vary
        try:
            return trace.record(prim, args, params)
        finally:
            current.varying = saved
    out = hi.staging(trace, None, *hi.in_tree.unflatten(args))
    return hi.outputs.operands(out, f"the result of {type(hi).__name__}.staging")


@dead_code_rules.rule(hi_call_p)
def _dce(eqn, used):
    prim: HiPrim = eqn.params["prim"]
    if not prim.has_rules("dce"):
        return [True] * len(eqn.invars), eqn
    wanted = prim.out_tree.unflatten(used)
    live = pytree.tree_map(lambda _: True, tuple(prim.in_avals))
    used_ins, smaller = prim.dce(wanted, live)
    if smaller is None:
        return [False] * len(eqn.invars), None
    needed = prim.inputs.leaves(used_ins, f"what {type(prim).__name__}.dce sets of its arguments")
    if smaller == prim:
        return [True] * len(eqn.invars), eqn
    invars = [v for v, n in zip(eqn.invars, needed, strict=True) if n]
    kept = [v for v, u in zip(eqn.outvars, used, strict=True) if u]
    return needed, eqn.replace(
        invars=invars, outvars=kept, params={"prim": smaller}, effects=frozenset(smaller.effects)
    )


def _pair(prim: HiPrim, out: Any, tangent: Any) -> tuple[list, list]:
    name = type(prim).__name__
    outs = prim.outputs.operands(out, f"the result of a rule of {name}")
    return outs, prim.outputs.tangents(tangent, f"the tangent of the result of {name}")


@jvp_rules.rule(hi_call_p)
def _jvp(primals, tangents, *, prim: HiPrim):
    out, tangent = prim.jvp(prim.in_tree.unflatten(primals), prim.in_tree.unflatten(tangents))
    return _pair(prim, out, tangent)


def _nonzeros(prim: HiPrim, tangents: Sequence[Any]) -> tuple:
    return prim.in_tree.unflatten([not is_zero(t) for t in tangents])


@linearize_rules.rule(hi_call_p)
def _linearize(primals, tangents, *, prim: HiPrim):
    """Linearize by the rule of reverse mode if the class defines one, else by `lin`, else by `jvp`."""
    name = type(prim).__name__
    args, nzs = prim.in_tree.unflatten(primals), _nonzeros(prim, tangents)
    derived = prim.rule("vjp_fwd") in (vjp_from_lin.vjp_fwd, vjp_from_jvp.vjp_fwd)
    if prim.has_rules("vjp_fwd") and not derived:
        out, residuals = prim.vjp_fwd(nzs, *args)
    elif prim.has_rules("lin", "linearized") and prim.rule("lin") is not linearize_from_jvp.lin:
        out, residuals = prim.lin(nzs, *args)
        return _pair(prim, out, prim.linearized(residuals, *prim.in_tree.unflatten(tangents)))
    elif prim.has_rules("jvp"):
        return _jvp(primals, tangents, prim=prim)
    else:
        prim.vjp_fwd(nzs, *args)  # raises the error of a missing rule
        raise AssertionError(f"{name}.vjp_fwd is missing")
    outs = prim.outputs.operands(out, f"the result of {name}.vjp_fwd")
    structure, saved = Residuals.taken(residuals)
    pushed = kept(prim.inputs.avals, primals) if prim.has_rules("jvp") or prim.has_rules("lin", "linearized") else []
    live = [t for t in tangents if type(t) is not Zero]
    moved = hi_linear_p.bind(
        *saved,
        *pushed,
        *live,
        prim=prim,
        residuals=structure,
        num_res=len(saved),
        num_primals=len(pushed),
        active=tuple(type(t) is not Zero for t in tangents),
    )
    return outs, [as_tangent(a, t) for a, t in zip(prim.outputs.avals, moved, strict=True)]


# ---- the linear part of a call with a rule of reverse mode. Its operands: residuals, primals (if the operation has a
# rule for tangents in forward mode), and tangents of the arguments that are `active`.

hi_linear_p: Final = Primitive("hi_linear", multiple_results=True)
explicit.with_types |= {hi_call_p, hi_linear_p}  # the types of results are declared, with their splits
custom_rules.logging[hi_linear_p] = lambda params: params["prim"].has_rules("vjp_bwd_retval_logs")


@hi_linear_p.abstract
def _linear_types(*avals, prim, **_):
    return [a.to_tangent_aval() for a in prim.outputs.avals]


@hi_linear_p.def_impl
def _push(*args, prim: HiPrim, residuals, num_res, num_primals, active) -> list:
    if not num_primals:
        prim.lin(prim.inputs.tree.unflatten([False] * len(prim.inputs.avals)))  # raises the error of a missing rule
    primals = restored(prim.inputs.avals, args[num_res : num_res + num_primals])
    live = iter(args[num_res + num_primals :])
    tangents = [next(live) if a else Zero.of(x) for a, x in zip(active, primals, strict=True)]
    values, moved = prim.in_tree.unflatten(primals), prim.in_tree.unflatten(tangents)
    if prim.has_rules("lin", "linearized"):
        _, saved = prim.lin(_nonzeros(prim, tangents), *values)
        out = prim.linearized(saved, *moved)
    else:
        _, out = prim.jvp(values, moved)
    moved = prim.outputs.tangents(out, f"the tangent of the result of {type(prim).__name__}")
    return [instantiate_zeros(t) for t in moved]


decompositions.add(hi_linear_p, _push)
represent_rules.add(hi_linear_p, _push)


@jvp_rules.rule(hi_linear_p, kind="composed")
def _push_jvp(primals, tangents, **params):
    return jvp_flat(lambda *xs: _push(*xs, **params), primals, tangents)


@batch_rules.rule(hi_linear_p, kind="composed")
def _push_batch(axis, args, dims, **params):
    return batch_flat(lambda *xs: _push(*xs, **params), axis, args, dims)


def _accums(prim: HiPrim, active: Sequence[bool]) -> list:
    return [ValAccum(a) if f else NullAccum(a) for a, f in zip(prim.inputs.avals, active, strict=True)]


def _collected(accums: Sequence[Any]) -> list:
    """A cotangent or None for each argument."""
    found = [as_tangent(x.aval, x.freeze()) if isinstance(x, ValAccum) else None for x in accums]
    return [None if type(ct) is Zero else ct for ct in found]


@transpose_rules.rule(hi_linear_p)
def _pull(cts, *args, prim: HiPrim, residuals, num_res, num_primals, active):
    accums = _accums(prim, active)
    saved, outgrad = residuals.tree(args[:num_res]), prim.out_tree.unflatten(cts)
    prim.vjp_bwd(saved, outgrad, *prim.in_tree.unflatten(accums))
    back = _collected(accums)
    return [None] * (num_res + num_primals) + [ct for ct, a in zip(back, active, strict=True) if a]


@transpose_rules.rule(hi_call_p)
def _transpose(cts, *args, prim: HiPrim):
    accums = [ValAccum(a) if is_undefined(x) else x for a, x in zip(prim.inputs.avals, args, strict=True)]
    prim.transpose(prim.out_tree.unflatten(cts), *prim.in_tree.unflatten(accums))
    return _collected(accums)


def _only_reads(prim: HiPrim, dims: Sequence[Any]) -> bool:
    """Whether an operation makes arrays of libraries' values that are not mapped. Its composition is mapped."""
    high = [d for a, d in zip(prim.inputs.avals, dims, strict=True) if a.is_high]
    return bool(high) and all(d is None for d in high) and not any(a.is_high for a in prim.outputs.avals)


def _composed(*values: Any, prim: HiPrim) -> list:
    """The results of the composition of an operation."""
    out = prim.expand(*prim.in_tree.unflatten([opened(x) for x in values]))
    return prim.outputs.operands(out, f"the result of {type(prim).__name__}.expand")


@batch_rules.rule(hi_call_p)
def _batch(axis, args, dims, *, prim: HiPrim):
    in_dims = prim.inputs.tree.unflatten(dims)
    if prim.has_rules("batch_dim_rule") and not prim.has_rules("batch"):
        batched = Batched(prim, axis, in_dims)
        return hi_call_p.bind(*args, prim=batched), spread(batched.out_dims, prim.out_aval)
    if not prim.has_rules("batch") and _only_reads(prim, dims):
        return batch_flat(lambda *xs: _composed(*xs, prim=prim), axis, args, dims)
    out, out_dims = prim.batch(axis, prim.inputs.tree.unflatten(args), in_dims)
    outs = prim.outputs.operands(out, f"the result of {type(prim).__name__}.batch")
    return outs, spread(out_dims, prim.out_aval)


# ---- rules that follow from others


@dataclass(frozen=True)
class _Tangents:
    """The positions of the differentiated arguments; a leaf of residuals that is not a value."""

    nzs: tuple[Any, ...]

    def split(self, prim: HiPrim, trees: Sequence[Any]) -> list[Any]:
        """The tangents of the differentiated arguments, from a tree for each argument."""
        flags = prim.inputs.leaves(self.nzs, "nzs_in")
        every = prim.inputs.tangents(tuple(trees), "tangents")
        return [instantiate_zeros(t) for t, f in zip(every, flags, strict=True) if f]

    def joined(self, prim: HiPrim, tangents: Sequence[Any]) -> tuple[Any, ...]:
        """The opposite of `split`: `Zero` for the other arguments."""
        rest = iter(tangents)
        flags = prim.inputs.leaves(self.nzs, "nzs_in")
        return prim.in_tree.unflatten(
            [next(rest) if f else Zero(a.to_tangent_aval()) for f, a in zip(flags, prim.inputs.avals, strict=True)]
        )

    def types(self, prim: HiPrim) -> list[Any]:
        flags = prim.inputs.leaves(self.nzs, "nzs_in")
        return [a.to_tangent_aval() for f, a in zip(flags, prim.inputs.avals, strict=True) if f]


@dataclass(frozen=True, eq=False)
class _LinearProgram:
    """A linear program ``residuals, tangents of the differentiated arguments -> tangents of the results``.

    Attributes:
      tangents: the positions of the differentiated arguments.
      program: the program.
      moving: a boolean per result: whether it has a tangent.
    """

    tangents: _Tangents
    program: Any
    moving: tuple[bool, ...]

    def __call__(self, prim: HiPrim, saved: Sequence[Any], tangents: Sequence[Any]) -> Any:
        rest = iter(run(self.program, *saved, *self.tangents.split(prim, tangents)))
        moved = zip(self.moving, prim.outputs.avals, strict=True)
        return prim.out_tree.unflatten([next(rest) if m else Zero(a.to_tangent_aval()) for m, a in moved])


def _on_tape(prim: HiPrim, tangents: _Tangents, fun: Callable) -> tuple[Tape, list, Any]:
    """Run a function of tangents with tape nodes for them: (tape, nodes, result of the function)."""
    tape = Tape(current.trace)
    nodes = [tape.node(a) for a in tangents.types(prim)]
    with entered(tape):
        return tape, nodes, fun(tangents.joined(prim, nodes))


def _lin_from_jvp(self: HiPrim, nzs_in: tuple, *primals: Any) -> tuple:
    """The result, and the linear program of the tangent with its residuals, from the rule `jvp`."""
    which = _Tangents(nzs_in)
    tape, nodes, (out, tangent) = _on_tape(self, which, lambda tangents: self.jvp(primals, tangents))
    moved = self.outputs.tangents(tangent, f"the tangent of the result of {type(self).__name__}")
    moving = tuple(type(t) is not Zero for t in moved)
    program, saved = tape.end().to_jaxpr(nodes, [t for t in moved if type(t) is not Zero])
    return out, (_LinearProgram(which, program, moving), saved)


def _linearized_from_jvp(self: HiPrim, residuals: Any, *tangents: Any) -> Any:
    program, saved = residuals
    return program(self, saved, tangents)


def _vjp_fwd_from_jvp(self: HiPrim, nzs_in: tuple, *primals: Any) -> tuple:
    out, residuals = _lin_from_jvp(self, nzs_in, *primals)
    return out, (_Tangents(nzs_in), residuals)


def _vjp_fwd_from_lin(self: HiPrim, nzs_in: tuple, *primals: Any) -> tuple:
    out, residuals = self.lin(nzs_in, *primals)
    return out, (_Tangents(nzs_in), residuals)


def _transposed(self: HiPrim, linearized: Callable, which: _Tangents, cotangent: Any) -> tuple:
    """Cotangents of the arguments, from the transpose of a linear function of their tangents."""
    tape, nodes, tangent = _on_tape(self, which, linearized)
    moved = self.outputs.tangents(tangent, f"the tangent of the result of {type(self).__name__}")
    cts = self.outputs.tangents(cotangent, "a cotangent")
    return which.joined(self, tape.end().backward(moved, cts, nodes))


def _bwd_from_jvp(self: HiPrim, res: Any, outgrad: Any, /) -> tuple:
    which, residuals = res
    return _transposed(self, lambda ts: _linearized_from_jvp(self, residuals, *ts), which, outgrad)


def _bwd_from_lin(self: HiPrim, res: Any, outgrad: Any, /) -> tuple:
    which, residuals = res
    return _transposed(self, lambda ts: self.linearized(residuals, *ts), which, outgrad)


class _LinRules(NamedTuple):
    """The rules `lin` and `linearized` from other rules of a class: ``lin, linearized = linearize_from_jvp``.

    Examples:

      >>> from jax.experimental import hijax

      >>> class Cube(hijax.HiPrim):
      ...     def __init__(self):
      ...         self.in_avals, self.out_aval, self.params = (jax.typeof(1.),), jax.typeof(1.), {}
      ...         super().__init__()
      ...     expand = lambda self, x: x ** 3
      ...     def jvp(self, primals, tangents):
      ...         return self(*primals), 3 * primals[0] ** 2 * tangents[0]
      ...     lin, linearized = hijax.linearize_from_jvp
      ...
      >>> out, push = jax.linearize(Cube(), 2.)
      >>> out, push(1.)
      (8.0, Array(12., dtype=float32, ...))
    """

    lin: Callable[..., Any]
    linearized: Callable[..., Any]


class _VJPRules(NamedTuple):
    """The rules `vjp_fwd` and `vjp_bwd_retval` from other rules of a class: from `jvp`, or from `lin` and `linearized`.

    Examples:

      >>> from jax.experimental import hijax

      >>> class Cube(hijax.HiPrim):
      ...     def __init__(self):
      ...         self.in_avals, self.out_aval, self.params = (jax.typeof(1.),), jax.typeof(1.), {}
      ...         super().__init__()
      ...     expand = lambda self, x: x ** 3
      ...     def jvp(self, primals, tangents):
      ...         return self(*primals), 3 * primals[0] ** 2 * tangents[0]
      ...     vjp_fwd, vjp_bwd_retval = hijax.vjp_from_jvp
      ...
      >>> jax.grad(Cube())(2.)
      Array(12., dtype=float32, ...)
      >>> class Other(Cube):
      ...     lin = lambda self, nzs_in, x: (self(x), 3 * x ** 2)
      ...     linearized = lambda self, slope, t: slope * t
      ...     vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin
      ...
      >>> jax.grad(Other())(2.)
      Array(12., dtype=float32, ...)
    """

    vjp_fwd: Callable[..., Any]
    vjp_bwd_retval: Callable[..., Any]


# Values for attributes of classes.
linearize_from_jvp: Final = _LinRules(_lin_from_jvp, _linearized_from_jvp)
vjp_from_jvp: Final = _VJPRules(_vjp_fwd_from_jvp, _bwd_from_jvp)
vjp_from_lin: Final = _VJPRules(_vjp_fwd_from_lin, _bwd_from_lin)


def jvp_from_lin(self: HiPrim, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    """The rule `jvp` from `lin` and `linearized`, for a class attribute: ``jvp = jvp_from_lin``.

    Args:
      self: the operation, a `HiPrim`.
      primals, tangents: a tuple each, with an entry for each argument. Tangents may be `Zero`.

    Returns:
      (result, tangent of the result).

    Examples:

      >>> from jax.experimental import hijax

      >>> class Cube(hijax.HiPrim):
      ...     def __init__(self):
      ...         self.in_avals, self.out_aval, self.params = (jax.typeof(1.),), jax.typeof(1.), {}
      ...         super().__init__()
      ...     expand = lambda self, x: x ** 3
      ...     lin = lambda self, nzs_in, x: (self(x), 3 * x ** 2)
      ...     linearized = lambda self, slope, t: slope * t
      ...     jvp = hijax.jvp_from_lin
      ...
      >>> jax.jvp(Cube(), (2.,), (1.,))
      (8.0, 12.0)
    """
    nonzeros = self.inputs.tree.unflatten(
        [type(t) is not Zero for t in self.inputs.leaves(tuple(tangents), "tangents")]
    )
    out, residuals = self.lin(nonzeros, *primals)
    return out, self.linearized(residuals, *tangents)
