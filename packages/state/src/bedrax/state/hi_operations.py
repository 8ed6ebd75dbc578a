"""The class of operations of libraries (`jax.experimental.hijax.HiPrim`), and what such operations take and return.

A library derives a class from `HiPrim`; an object of it is one operation with its parameters and types. A call binds
`hi_call_p` to the arguments; its parameter `prim` is that object. `bedrax.state.hi_prims` has its rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from bedrax import pytree
from bedrax.autodiff.accumulators import GradAccum
from bedrax.autodiff.tables import Zero, has_tangent
from bedrax.batching.tables import AxisData
from bedrax.core.avals import AbstractValue, typeof
from bedrax.core.effects import Effects
from bedrax.core.tracing import Primitive, Tracer
from bedrax.lax.primitives import custom_rules
from bedrax.state.operations import new_ref

# ---- trees of values


def is_zero(x: Any) -> bool:
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
        return [as_tangent(a, t) for a, t in zip(self.avals, self.leaves(values, what), strict=True)]


def as_tangent(aval: AbstractValue, tangent: Any) -> Any:
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


# ---- the primitive of a call. params: prim (a HiPrim)

hi_call_p: Final = Primitive("hi_call", multiple_results=True)


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


# ---- what rules keep


def kept(avals: Sequence[AbstractValue], values: Sequence[Any]) -> list[Any]:
    """Values for the linear part. Those that loops cannot stack are kept as the arrays that represent them."""
    return [x for a, value in zip(avals, values, strict=True) for x in (Unpack(a)(value) if _is_split(a) else (value,))]


def restored(avals: Sequence[AbstractValue], kept: Sequence[Any]) -> list[Any]:
    """The opposite of `kept`."""
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
        leaves, tree = pytree.tree_flatten(residuals, is_leaf=is_zero)
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
        return cls(Types(tuple(avals), tree), tuple(fixed)), kept(avals, values)

    def tree(self, values: Sequence[Any]) -> Any:
        types, fixed = self.types, dict(self.fixed)
        values = iter(restored(types.avals, values))
        count = len(types.avals) + len(fixed)
        return types.tree.unflatten([fixed[i] if i in fixed else next(values) for i in range(count)])
