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
from bedrax.autodiff.linearization import Node, Tape
from bedrax.autodiff.tables import Zero, has_tangent, is_undefined, jvp_rules, linearize_rules, transpose_rules
from bedrax.batching.tables import AxisData, batch_rules, to_front
from bedrax.batching.trace import batch_flat, batch_flat_with_aux, mapped_aval, place, unmapped_aval
from bedrax.core.avals import AbstractValue, typeof
from bedrax.core.dead_code import dead_code_rules
from bedrax.core.effects import Effects
from bedrax.core.ir import run
from bedrax.core.objects import MappingSpec
from bedrax.core.staging import stage_rules
from bedrax.core.tables import effect_rules, print_rules, represent_rules
from bedrax.core.tracing import Primitive, Tracer, current, entered
from bedrax.lax.primitives import custom_rules
from bedrax.lax.primitives.reductions import reduce_sum
from bedrax.lax.tables import decompositions
from bedrax.parallel import explicit
from bedrax.state.operations import new_ref

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


# ---- trees of values


def _is_zero(x: Any) -> bool:
    return type(x) is Zero


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent as a value: for `Zero` the zero of its type (`vspace_zero` of a library's type); other tangents
    unchanged.

    Examples:

      >>> from jax.experimental import hijax

      >>> hijax.instantiate_zeros(hijax.Zero(jax.typeof(jnp.ones(2)))), hijax.instantiate_zeros(5.)
      (Array([0., 0.], dtype=float32), 5.0)
    """
    if type(tangent) is not Zero:
        return tangent
    return tangent.instantiate()


class Types(NamedTuple):
    """The types of a tree of values.

    Attributes:
      avals: of the leaves.
      tree: the structure.
    """

    avals: tuple[AbstractValue, ...]
    tree: Any

    @classmethod
    def of(cls, avals: Any) -> Types:
        leaves, tree = pytree.tree_flatten(avals)
        return cls(tuple(leaves), tree)

    @property
    def is_composed(self) -> bool:
        """Whether values are references, or objects that no arrays represent: an operation on them is its composition."""
        return any(low.mutable for a in self.avals for low in a.lo_ty()) or any(
            a.is_high and not a.represented for a in self.avals
        )

    def leaves(self, values: Any, what: str) -> list[Any]:
        """The leaves of a tree of values (or `Zero`)."""
        try:
            return self.tree.flatten_up_to(values)
        except (TypeError, ValueError) as e:
            raise TypeError(f"{what}: expected values of structure {self.tree}, got {values!r}") from e

    def operands(self, values: Any, what: str) -> list[Any]:
        """The leaves of a tree of values, as operands of an operation."""
        return [a.as_operand(x) for a, x in zip(self.avals, self.leaves(values, what), strict=True)]

    def tangents(self, values: Any, what: str) -> list[Any]:
        """The tangents of a tree of values, as operands; `Zero` in place of None."""
        return [_tangent(a, t) for a, t in zip(self.avals, self.leaves(values, what), strict=True)]


def _tangent(aval: AbstractValue, tangent: Any) -> Any:
    kind = aval.to_tangent_aval()
    if tangent is None or type(tangent) is Zero or (kind.is_array and not has_tangent(kind.dtype)):
        return Zero(kind)
    return kind.as_operand(tangent)


# ---- accumulators of cotangents


class RefAccum(GradAccum):
    """A `GradAccum` that adds to a reference.

    Args:
      aval: the type of the argument.
      ref: the reference. Default: one of zeros, made at the first cotangent.

    Examples:

      >>> from jax.experimental import hijax

      >>> ref = jax.new_ref(jnp.zeros(2))
      >>> hijax.RefAccum(jax.typeof(jnp.ones(2)), ref).accum(jnp.array([1., 5.]))
      >>> ref[...]
      Array([1., 5.], dtype=float32)
    """

    ref: Any

    def __init__(self, aval: AbstractValue, ref: Any = None) -> None:
        self.aval = aval
        self.ref = ref

    def inst(self) -> RefAccum:
        """Make the reference if there is none; returns the object itself."""
        if self.ref is None:
            self.ref = new_ref(instantiate_zeros(Zero(self.aval.to_tangent_aval())))
        return self

    def accum(self, x: Any) -> None:
        """Add a cotangent. None and `Zero` add nothing."""
        if x is None or type(x) is Zero:
            return
        ref = self.inst().ref
        ref.addupdate(x)

    def freeze(self) -> Any:
        """The value of the reference; `Zero` if there is none."""
        return Zero(self.aval.to_tangent_aval()) if self.ref is None else self.ref[...]


# ---- the operations


class HiPrim:
    """An operation with its own rules. A class that derives from it is a kind of operations.

    Its ``__init__`` sets three attributes and then calls ``super().__init__()``:

    - `in_avals`: a tuple with the type of each argument, or a pytree of types;
    - `out_aval`: the type of the result, or a pytree of types;
    - `params`: a dict of hashable parameters, which are attributes of the object, too.

    Two objects are equal if they are of one class and have equal types and parameters.

    Rules are methods. All except `expand` are optional; a missing rule that is needed raises NotImplementedError:

    - ``expand(*args) -> result``: the computation.
    - ``jvp(primals, tangents) -> (result, tangent)``: forward mode. Tangents may be `Zero`.
    - ``vjp_fwd(nzs_in, *args) -> (result, residuals)`` with ``vjp_bwd_retval(residuals, cotangent) -> cotangents`` or
      ``vjp_bwd(residuals, cotangent, *accums)``: reverse mode. `nzs_in` has a boolean per argument: whether it is
      differentiated. An accum is a `GradAccum`.
    - ``lin(nzs_in, *args) -> (result, residuals)`` with ``linearized(residuals, *tangents) -> tangent``: linearization.
    - ``transpose(cotangent, *args)``: for an operation that is linear in those arguments that are a `GradAccum`.
    - ``batch(axis_data, args, dims) -> (result, dims of the result)``, or ``batch_dim_rule(axis_data, dims) -> dims of
      the result``: the rules of the operation on batches are then the rules of the class under `vmap`. `dims` has the
      mapped axis of each argument, or None.
    - ``dce(used_outs, live_ins) -> (used_ins, operation or None)``: the remaining operation if only some results are
      used.
    - ``staging(trace, source_info, *args) -> result``: records the operation in a program.
    - ``check(*arg_types)``: raises an error for wrong arguments.
    - ``pp_params() -> dict``: the printed parameters.

    Examples:

      >>> from jax.experimental import hijax

      >>> kind = jax.typeof(jnp.ones(3))
      >>> class Scaled(hijax.HiPrim):
      ...     def __init__(self, by):
      ...         self.in_avals, self.out_aval, self.params = (kind,), kind, {"by": by}
      ...         super().__init__()
      ...     def expand(self, x):
      ...         return self.by * x
      ...     def vjp_fwd(self, nzs_in, x):
      ...         return self(x), None
      ...     def vjp_bwd_retval(self, residuals, ct):
      ...         print("backward by", self.by)
      ...         return (self.by * ct,)
      ...
      >>> jax.grad(lambda x: Scaled(3.)(x).sum())(jnp.ones(3))
      backward by 3.0
      Array([3., 3., 3.], dtype=float32)
      >>> jax.make_jaxpr(Scaled(3.))(jnp.ones(3))
      { lambda ; a:f32[3]. let b:f32[3] = hi_call[prim=Scaled[by=3.0]] a in (b,) }
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]
    effects: Effects = frozenset()
    skip_linearization_on_zero_tangents: bool = False

    def __init__(self) -> None:
        missing = [name for name in ("in_avals", "out_aval", "params") if not hasattr(self, name)]
        if missing:
            raise AttributeError(f"{type(self).__name__} sets {', '.join(missing)} before it calls super().__init__()")
        self.inputs: Types = Types.of(tuple(self.in_avals))
        self.outputs: Types = Types.of(self.out_aval)
        self.in_avals_flat: list[Any] = list(self.inputs.avals)
        self.in_tree: Any = self.inputs.tree
        self.out_avals_flat: list[Any] = list(self.outputs.avals)
        self.out_tree: Any = self.outputs.tree
        self.is_composed: bool = self.inputs.is_composed or self.outputs.is_composed
        self.__dict__.update(self.params)

    def _data(self) -> tuple:
        return type(self), self.inputs, self.outputs, self.params

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, HiPrim) and self._data() == other._data()

    def __hash__(self) -> int:
        return hash((type(self), self.inputs, self.outputs, tuple(sorted(self.params))))

    def __repr__(self) -> str:
        params = ", ".join(f"{k}={v}" for k, v in self.pp_params().items())
        return f"{type(self).__name__}[{params}]" if params else type(self).__name__

    def __call__(self, *args: Any) -> Any:
        """Apply the operation to arguments of the types `in_avals`."""
        leaves = self.inputs.leaves(tuple(args), f"{type(self).__name__} takes {len(self.in_avals)} arguments")
        self.check(*pytree.tree_unflatten(self.in_tree, [typeof(x) for x in leaves]))
        if self.is_composed:
            return self.expand(*args)
        operands = [a.as_operand(x) for a, x in zip(self.inputs.avals, leaves, strict=True)]
        return self.out_tree.unflatten(hi_call_p.bind(*operands, prim=self))

    def check(self, *arg_tys: Any) -> None:
        """Accept arguments of all types."""

    def pp_params(self) -> dict[str, Any]:
        """The parameters."""
        return self.params

    def _lacks(self, what: str, methods: str, more: str = "") -> NotImplementedError:
        return NotImplementedError(f"for {what}, the class {type(self).__name__} must define {methods}{more}")

    def expand(self, *args: Any) -> Any:
        raise self._lacks("evaluation", "`expand`")

    def jvp(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
        raise self._lacks("forward mode (jvp)", "`jvp`", ", or set `jvp = jvp_from_lin`")

    def lin(self, nzs_in: tuple[Any, ...], *primals: Any) -> tuple[Any, ...]:
        raise self._lacks("linearize", "`lin` and `linearized`", ", or set `lin, linearized = linearize_from_jvp`")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        raise self._lacks("linearize", "`linearized`")

    def vjp_fwd(self, nzs_in: tuple[Any, ...], /, *args: Any) -> tuple[Any, ...]:
        raise self._lacks(
            "reverse mode (grad)", "`vjp_fwd`", ", or set `vjp_fwd, vjp_bwd_retval = vjp_from_jvp` (or `vjp_from_lin`)"
        )

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        """Add the results of `vjp_bwd_retval` (or of `vjp_bwd_retval_logs`, which also returns logs) to the accums."""
        if self.has_rules("vjp_bwd_retval_logs"):
            cotangents, logs = self.vjp_bwd_retval_logs(res, outgrad)
            custom_rules.log(logs or {})
        else:
            cotangents = self.vjp_bwd_retval(res, outgrad)
        self.accumulate(cotangents, arg_accums)

    def accumulate(self, cotangents: Any, arg_accums: Sequence[Any]) -> None:
        """Add a cotangent (or None) for each argument to its accums."""
        for argument, accum, ct in zip(self.in_avals, arg_accums, _per_argument(self, cotangents), strict=True):
            if ct is None or type(ct) is Zero:
                continue
            types = Types.of(argument)
            accums = types.leaves(accum, "accums")
            for one, x in zip(accums, types.leaves(ct, f"a cotangent of {type(self).__name__}"), strict=True):
                one.accum(x)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        raise self._lacks("reverse mode (grad)", "`vjp_bwd` or `vjp_bwd_retval`")

    def vjp_bwd_retval_logs(self, res: Any, outgrad: Any, /) -> Any:
        raise self._lacks("reverse mode with logs", "`vjp_bwd_retval_logs`")

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        raise self._lacks("transposition", "`transpose`")

    def batch(self, axis_data: AxisData, args: tuple[Any, ...], dims: tuple[Any, ...]) -> tuple[Any, ...]:
        raise self._lacks("vmap", "`batch`", ", or `batch_dim_rule`")

    def batch_dim_rule(self, axis_data: AxisData, in_dims: tuple[Any, ...], /) -> Any:
        raise self._lacks("vmap", "`batch_dim_rule`", ", or `batch`")

    def dce(self, used_outs: Any, live_ins: Any) -> tuple[Any, ...]:
        """Keep everything."""
        return pytree.tree_map(lambda _: True, tuple(self.in_avals)), self

    def staging(self, trace: Any, source_info: Any, *args: Any) -> Any:
        """Record an equation of `hi_call`."""
        operands = self.inputs.operands(args, type(self).__name__)
        return self.out_tree.unflatten(trace.record(hi_call_p, operands, {"prim": self}))

    def rule(self, name: str) -> Any:
        """The function of the class that is the rule of this name."""
        return getattr(type(self), name)

    def has_rules(self, *names: str) -> bool:
        """Whether the operation has these rules."""
        return all(self.rule(name) is not getattr(HiPrim, name) for name in names)

    @classmethod
    def defines(cls, *names: str) -> bool:
        """Whether the class overrides these methods."""
        return all(getattr(cls, name) is not getattr(HiPrim, name) for name in names)


class VJPHiPrimitive(HiPrim):
    """The former name of `HiPrim`.

    Examples:

      >>> from jax.experimental import hijax

      >>> kind = jax.typeof(1.)
      >>> class Square(hijax.VJPHiPrimitive):
      ...     def __init__(self):
      ...         self.in_avals, self.out_aval, self.params = (kind,), kind, {}
      ...         super().__init__()
      ...     expand = lambda self, x: x * x
      ...     vjp_fwd = lambda self, nzs_in, x: (self(x), x)
      ...     vjp_bwd_retval = lambda self, x, ct: (2 * x * ct,)
      ...
      >>> jax.value_and_grad(Square())(3.)
      (9.0, Array(6., dtype=float32, ...))
    """


def _per_argument(prim: HiPrim, cotangents: Any) -> tuple:
    if not isinstance(cotangents, tuple | list) or len(cotangents) != len(prim.in_avals):
        raise TypeError(
            f"the backward rule of {type(prim).__name__} returns a tuple with a cotangent for each of its"
            f" {len(prim.in_avals)} arguments, got {cotangents!r}"
        )
    return tuple(cotangents)


# ---- the primitive of a call, and its rules. params: prim (a HiPrim)

hi_call_p: Final = Primitive("hi_call", multiple_results=True)


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
    return prim.in_tree.unflatten([not _is_zero(t) for t in tangents])


def _kept(avals: Sequence[AbstractValue], values: Sequence[Any]) -> list[Any]:
    """Values for the linear part. Those that loops cannot stack are kept as the arrays that represent them."""
    return [x for a, value in zip(avals, values, strict=True) for x in (Unpack(a)(value) if _is_split(a) else (value,))]


def _restored(avals: Sequence[AbstractValue], kept: Sequence[Any]) -> list[Any]:
    """The opposite of `_kept`."""
    rest = iter(kept)
    return [Pack(a)(*[next(rest) for _ in a.lo_ty()]) if _is_split(a) else next(rest) for a in avals]


def _is_split(aval: AbstractValue) -> bool:
    return aval.represented and not hasattr(type(aval), "inc_rank")


class Residuals(NamedTuple):
    """The structure of residuals of a forward rule: a tree of `types`; its leaves that are not values are `fixed`."""

    types: Types
    fixed: tuple[Any, ...]

    @classmethod
    def taken(cls, residuals: Any) -> tuple[Residuals, list[Any]]:
        """(the structure, the values)."""
        leaves, tree = pytree.tree_flatten(residuals, is_leaf=_is_zero)
        fixed, avals, values = [], [], []
        for i, x in enumerate(leaves):
            try:
                aval = typeof(x)
            except TypeError:
                fixed.append((i, x))
                continue
            if aval.is_high and not aval.represented:
                fixed.append((i, x))
                continue
            avals.append(aval)
            values.append(aval.as_operand(x))
        return cls(Types(tuple(avals), tree), tuple(fixed)), _kept(avals, values)

    def tree(self, values: Sequence[Any]) -> Any:
        types, fixed = self.types, dict(self.fixed)
        values = iter(_restored(types.avals, values))
        count = len(types.avals) + len(fixed)
        return types.tree.unflatten([fixed[i] if i in fixed else next(values) for i in range(count)])


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
    pushed = _kept(prim.inputs.avals, primals) if prim.has_rules("jvp") or prim.has_rules("lin", "linearized") else []
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
    return outs, [_tangent(a, t) for a, t in zip(prim.outputs.avals, moved, strict=True)]


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
    primals = _restored(prim.inputs.avals, args[num_res : num_res + num_primals])
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
    found = [_tangent(x.aval, x.freeze()) if isinstance(x, ValAccum) else None for x in accums]
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
        return hi_call_p.bind(*args, prim=batched), _spread(batched.out_dims, prim.out_aval)
    if not prim.has_rules("batch") and _only_reads(prim, dims):
        return batch_flat(lambda *xs: _composed(*xs, prim=prim), axis, args, dims)
    out, out_dims = prim.batch(axis, prim.inputs.tree.unflatten(args), in_dims)
    outs = prim.outputs.operands(out, f"the result of {type(prim).__name__}.batch")
    return outs, _spread(out_dims, prim.out_aval)


# ---- operations on batches, of a class with `batch_dim_rule`


class Batched(HiPrim):
    """An operation of a class with `batch_dim_rule`, on batches. Its rules are those of the class under `vmap`.

    Residuals are mapped at axis 0. The cotangent of an argument that is not mapped is summed over the mapped axis.
    """

    prim: HiPrim
    axis: AxisData
    in_dims: tuple[Any, ...]
    out_dims: Any

    # The rules that it has if the class has them. Those that it lacks keep the operation as it is.
    shared: Final = frozenset(
        (
            "expand",
            "jvp",
            "lin",
            "linearized",
            "vjp_fwd",
            "vjp_bwd",
            "vjp_bwd_retval",
            "vjp_bwd_retval_logs",
            "transpose",
        )
    )

    def __init__(self, prim: HiPrim, axis: AxisData, in_dims: tuple[Any, ...]) -> None:
        out_dims = self._checked(prim, prim.batch_dim_rule(axis, in_dims))
        self.in_avals: tuple[Any, ...] = unmap_avals(axis, tuple(prim.in_avals), in_dims)
        self.out_aval: Any = unmap_avals(axis, prim.out_aval, out_dims)
        self.params: dict[str, Any] = {"prim": prim, "axis": axis, "in_dims": in_dims, "out_dims": out_dims}
        self.effects: Effects = prim.effects
        super().__init__()

    @staticmethod
    def _checked(prim: HiPrim, dims: Any) -> Any:
        """The mapped axes of the result, one for each array."""
        name = f"{type(prim).__name__}.batch_dim_rule"
        try:
            flat = _spread(dims, prim.out_aval)
        except (TypeError, ValueError) as e:
            raise TypeError(f"{name} returned {dims!r}, which does not fit the result of type {prim.out_aval}") from e
        for d, aval in zip(flat, prim.outputs.avals, strict=True):
            if d is not None and (type(d) is not int or not -aval.ndim - 1 <= d <= aval.ndim):
                raise TypeError(
                    f"{name} returns an axis of the batch or None for each result, got {d!r} for elements of type {aval}"
                )
        return prim.outputs.tree.unflatten(
            [d if d is None else d % (a.ndim + 1) for d, a in zip(flat, prim.outputs.avals, strict=True)]
        )

    def rule(self, name: str) -> Any:
        return self.prim.rule(name) if name in self.shared else super().rule(name)

    def pp_params(self) -> dict[str, Any]:
        return {"prim": self.prim, "size": self.axis.size, "in_dims": self.in_dims, "out_dims": self.out_dims}

    def _mapped(self, f: Callable, in_axes: Any, out_axes: Any, sum_match: bool = False) -> Callable:
        return vmap_rule(self.axis, f, in_axes, out_axes, sum_match=sum_match)

    def _saving(self, f: Callable, args: Sequence[Any]) -> tuple:
        """The result of ``f(*args) -> (result, residuals)``, and the residuals, mapped at axis 0, in a fixed leaf."""
        kept: list[Residuals] = []

        def flat(*xs):
            out, residuals = f(*xs)
            structure, arrays = Residuals.taken(residuals)
            kept.append(structure)
            return out, arrays

        out, arrays = self._mapped(flat, self.in_dims, (self.out_dims, 0))(*args)
        return out, (_Saved(kept[-1]), arrays)

    def batch_dim_rule(self, axis_data: AxisData, in_dims: tuple[Any, ...], /) -> Any:
        return 0

    def expand(self, *args: Any) -> Any:
        return self._mapped(self.prim.expand, self.in_dims, self.out_dims)(*args)

    def jvp(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
        pushed = self._mapped(self.prim.jvp, (self.in_dims, self.in_dims), (self.out_dims, self.out_dims))
        return pushed(tuple(primals), tuple(tangents))

    def lin(self, nzs_in: tuple[Any, ...], *primals: Any) -> tuple[Any, ...]:
        return self._saving(lambda *xs: self.prim.lin(nzs_in, *xs), primals)

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        saved, arrays = residuals
        pushed = lambda xs, ts: self.prim.linearized(saved.structure.tree(xs), *ts)
        return self._mapped(pushed, (0, self.in_dims), self.out_dims)(arrays, tuple(tangents))

    def vjp_fwd(self, nzs_in: tuple[Any, ...], /, *args: Any) -> tuple[Any, ...]:
        return self._saving(lambda *xs: self.prim.vjp_fwd(nzs_in, *xs), args)

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        saved, arrays = res
        bwd = lambda xs, ct, accums: self.prim.vjp_bwd(saved.structure.tree(xs), ct, *accums)
        self._pulled(bwd, (0, self.out_dims), (arrays, outgrad), arg_accums)

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        leaves = self.inputs.leaves(maybe_accums, "arguments")
        dims = self.inputs.leaves(self.in_dims, "dims")
        known = [(x, d) for x, d in zip(leaves, dims, strict=True) if not isinstance(x, GradAccum)]

        def pull(ct, values, accums):
            rest = iter(values)
            sums = self.inputs.leaves(accums, "accums")
            args = [a if isinstance(x, GradAccum) else next(rest) for x, a in zip(leaves, sums, strict=True)]
            self.prim.transpose(ct, *self.in_tree.unflatten(args))

        accums = [
            x if isinstance(x, GradAccum) else NullAccum(a) for x, a in zip(leaves, self.inputs.avals, strict=True)
        ]
        given = (out_ct, [x for x, _ in known])
        self._pulled(pull, (self.out_dims, [d for _, d in known]), given, self.in_tree.unflatten(accums))

    def _pulled(self, pull: Callable, in_axes: tuple, given: tuple, arg_accums: Sequence[Any]) -> None:
        """Add what ``pull(*given, accums)`` adds for each element to the accums of the batches."""
        accums = self.inputs.leaves(tuple(arg_accums), "accums")
        live = [not isinstance(accum, NullAccum) for accum in accums]
        axes = self.inputs.leaves(self.in_dims, "dims")

        def cotangents(*xs):
            inner = [ValAccum(a) if f else NullAccum(a) for a, f in zip(self.prim.inputs.avals, live, strict=True)]
            pull(*xs, self.in_tree.unflatten(inner))
            return [accum.freeze() for accum, f in zip(inner, live, strict=True) if f]

        wanted = [d for d, f in zip(axes, live, strict=True) if f]
        found = self._mapped(cotangents, in_axes, wanted, sum_match=True)(*given)
        for accum, ct in zip([a for a, f in zip(accums, live, strict=True) if f], found, strict=True):
            accum.accum(ct)


@dataclass(frozen=True)
class _Saved:
    """The structure of the residuals of an element; a leaf of residuals that is not a value."""

    structure: Residuals


# ---- between a value of a library's type and the arrays that represent it


def _are_alike(aval: AbstractValue) -> bool:
    """Whether the tangents of the arrays that represent a value represent its tangent."""
    wanted = [(low.shape, low.dtype) for low in (low.to_tangent_aval() for low in aval.lo_ty())]
    return [(low.shape, low.dtype) for low in aval.to_tangent_aval().lo_ty()] == wanted


def _alike(aval: AbstractValue) -> AbstractValue:
    """The tangent type, whose values the tangents of the arrays represent."""
    tangent = aval.to_tangent_aval()
    if not _are_alike(aval):
        raise NotImplementedError(
            f"tangents of values of type {aval} are of type {tangent}, which tangents of the arrays of {aval} do not"
            " represent. Use operations of a class that derives from HiPrim, with rules for derivatives, in place of the"
            " arrays of a value"
        )
    return tangent


class Unpack(HiPrim):
    """The arrays that represent a value of a type."""

    def __init__(self, aval: AbstractValue) -> None:
        self.in_avals: tuple[Any, ...] = (aval,)
        self.out_aval: Any = tuple(aval.lo_ty())
        self.params: dict[str, Any] = {}
        super().__init__()

    def expand(self, value: Any) -> Any:
        return tuple(self.in_avals[0].lower_val(value))

    def jvp(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
        return self(*primals), Unpack(_alike(self.in_avals[0]))(*map(instantiate_zeros, tangents))

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        maybe_accums[0].accum(Pack(self.in_avals[0])(*map(instantiate_zeros, out_ct)))


class Pack(HiPrim):
    """The value of a type that arrays represent."""

    def __init__(self, aval: AbstractValue) -> None:
        self.in_avals: tuple[Any, ...] = tuple(aval.lo_ty())
        self.out_aval: Any = aval
        self.params: dict[str, Any] = {}
        super().__init__()

    def expand(self, *arrays: Any) -> Any:
        return self.out_aval.raise_val(*arrays)

    def jvp(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
        return self(*primals), Pack(_alike(self.out_aval))(*map(instantiate_zeros, tangents))

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        parts = Unpack(self.out_aval)(instantiate_zeros(out_ct))
        for accum, part in zip(maybe_accums, parts, strict=True):
            accum.accum(part)


def as_vectors(aval: AbstractValue, function: Callable[..., Any], *values: Any, name: str) -> Any:
    """The value of a tangent type that ``function(type, *arrays)`` represents, for each array of the type."""
    if not _are_alike(aval):
        raise NotImplementedError(
            f"tangents of type {aval} are to be added; the class {type(aval).__name__} must define `{name}`"
        )
    arrays = [Unpack(aval)(x) for x in values]
    return Pack(aval)(*[function(low, *parts) for low, *parts in zip(aval.lo_ty(), *arrays, strict=True)])


def opened(x: Any) -> Any:
    """A value of a type that arrays represent as the object, which holds tracers where the value is one."""
    if not isinstance(x, Tracer) or not x.aval.represented:
        return x
    return x.aval.raise_val(*Unpack(x.aval)(x))


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
      (8.0, Array(12., dtype=float32, ...))
    """
    nonzeros = self.inputs.tree.unflatten(
        [type(t) is not Zero for t in self.inputs.leaves(tuple(tangents), "tangents")]
    )
    out, residuals = self.lin(nonzeros, *primals)
    return out, self.linearized(residuals, *tangents)


# ---- for rules of batching


def bdims_at_front(axis_data: AxisData, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, ...]:
    """Batches with the mapped axis first. Values that are not mapped are repeated.

    Args:
      axis_data: the argument of a rule `batch`.
      args: arrays.
      dims: the mapped axis of each, or None.

    Examples:

      >>> from jax.experimental import hijax

      >>> class Dot(hijax.HiPrim):
      ...     def __init__(self, kind):
      ...         self.in_avals, self.out_aval, self.params = (kind, kind), kind, {}
      ...         super().__init__()
      ...     expand = lambda self, x, y: x * y
      ...     def batch(self, axis_data, args, dims):
      ...         x, y = hijax.bdims_at_front(axis_data, args, dims)
      ...         return Dot(jax.typeof(x))(x, y), 0
      ...
      >>> jax.vmap(Dot(jax.typeof(jnp.ones(2))), in_axes=(1, None))(jnp.ones((2, 3)), jnp.array([4., 5.]))
      Array([[4., 5.],
             [4., 5.],
             [4., 5.]], dtype=float32)
    """
    return tuple(to_front(x, d, axis_data.size) for x, d in zip(args, dims, strict=True))


def unmap_avals(axis_data: AxisData, avals: Any, dims: Any) -> Any:
    """The types of batches, from the types of elements.

    Args:
      axis_data: the argument of a rule `batch`.
      avals: a tree of types.
      dims: a tree of the same structure: the mapped axis (an int), or None.

    Examples:

      >>> from jax.experimental import hijax

      >>> class Axis:
      ...     name, size = "i", 5
      ...
      >>> kind = jax.typeof(jnp.ones((2, 3)))
      >>> hijax.unmap_avals(Axis(), (kind, kind), (1, None))
      (ShapedArray(float32[2,5,3]), ShapedArray(float32[2,3]))
    """
    leaves, tree = pytree.tree_flatten(avals)
    axes = tree.flatten_up_to(dims)
    return tree.unflatten([unmapped_aval(axis_data.size, d, a) for a, d in zip(leaves, axes, strict=True)])


def vmap_rule(
    axis_data: AxisData, f: Callable[..., Any], in_axes: Any, out_axes: Any, *, sum_match: bool = False
) -> Callable[..., Any]:
    """A function on batches, for a rule `batch`.

    Args:
      axis_data: the argument of the rule; collectives over its name work in `f`.
      f: takes and returns trees of arrays or `Zero`.
      in_axes, out_axes: axes (int) or None, or trees of them that are prefixes of the arguments and of the result.
      sum_match: sum a result whose entry in `out_axes` is None over the mapped axis.

    Returns:
      ``(*batches) -> batches``.

    Examples:

      >>> from jax.experimental import hijax

      >>> class Norm(hijax.HiPrim):
      ...     def __init__(self):
      ...         self.in_avals, self.out_aval, self.params = (jax.typeof(jnp.ones(2)),), jax.typeof(1.), {}
      ...         super().__init__()
      ...     expand = lambda self, x: jnp.sqrt((x * x).sum())
      ...     def batch(self, axis_data, args, dims):
      ...         return hijax.vmap_rule(axis_data, self.expand, dims, 0)(*args), 0
      ...
      >>> jax.vmap(Norm())(jnp.array([[3., 4.], [5., 12.]]))
      Array([ 5., 13.], dtype=float32)
    """

    def mapped(*args: Any) -> Any:
        leaves, tree = pytree.tree_flatten(args, is_leaf=_is_zero)
        axes = _spread(in_axes, args)
        zeros = {
            i: Zero(mapped_aval(x.aval, d, axis_data.size))
            for i, (x, d) in enumerate(zip(leaves, axes, strict=True))
            if _is_zero(x)
        }
        values = [x for x in leaves if not _is_zero(x)]
        dims = [d for x, d in zip(leaves, axes, strict=True) if not _is_zero(x)]

        def flat(*xs):
            rest = iter(xs)
            given = [zeros[i] if i in zeros else next(rest) for i in range(len(leaves))]
            outs, out_tree = pytree.tree_flatten(f(*tree.unflatten(given)), is_leaf=_is_zero)
            return [x for x in outs if not _is_zero(x)], (outs, out_tree)

        vals, found, (outs, out_tree) = batch_flat_with_aux(flat, axis_data, values, dims)
        out = out_tree.unflatten([x if _is_zero(x) else (0,) for x in outs])
        wanted = _spread(out_axes, out, lambda x: _is_zero(x) or x == (0,))
        rest = iter(zip(vals, found, strict=True))
        placed = [
            Zero(unmapped_aval(axis_data.size, w, x.aval)) if _is_zero(x) else _left(*next(rest), w)
            for x, w in zip(outs, wanted, strict=True)
        ]
        return out_tree.unflatten(placed)

    def _left(x, dim, wanted):
        if wanted is None and dim is not None and sum_match:
            return reduce_sum(x, (dim,))
        return place(x, dim, wanted, axis_data.size)

    return mapped


def _spread(axes: Any, tree: Any, is_leaf: Callable = _is_zero) -> list:
    """One axis or None per leaf of a tree, from axes for a prefix of it."""
    spread: list[Any] = []

    def add(axis, part):
        spread.extend([axis] * len(pytree.tree_leaves(part, is_leaf=is_leaf)))

    pytree.tree_map(add, axes, tree, is_leaf=lambda d: d is None or isinstance(d, int | MappingSpec))
    return spread
