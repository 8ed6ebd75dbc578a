"""Functions with derivative rules of their own: `custom_jvp`, `custom_vjp`, `custom_gradient`.

A call of such a function binds a primitive whose parameter `rule` is data: the user's functions, the static
arguments, and the structures of the others (`BoundRule`). Residuals travel with their structure: a forward rule
returns them with a `Pullback`, which reads them. So no rule keeps state of a call.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, overload

from bedrax import pytree
from bedrax.autodiff import flags
from bedrax.autodiff.accumulators import GradAccum, NullAccum, ValAccum
from bedrax.autodiff.tables import Zero, add_tangents, has_tangent, instantiate
from bedrax.core import config, dtypes, staging
from bedrax.core.avals import AbstractValue, aval_of
from bedrax.core.codes import coded
from bedrax.core.errors import UnexpectedTracerError
from bedrax.core.ir import run
from bedrax.core.signatures import normalized, positions_of, signature_of
from bedrax.core.source import api_boundary
from bedrax.core.staging import function_name
from bedrax.core.tracing import Tracer
from bedrax.core.typing import ArrayLike, P, R, R_co
from bedrax.lax.filling import zeros_of
from bedrax.lax.primitives.conversions import asarray, convert_element_type
from bedrax.lax.primitives.custom_rules import custom_jvp_call_p, custom_vjp_call_p, log
from bedrax.lax.primitives.placement import cotangent_type
from bedrax.lax.symbolic_zeros import SymbolicZero
from bedrax.pytree import PyTreeDef

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
    "zero_from_primal",
]


class CustomVJPPrimal:
    """An argument of a forward rule with symbolic zeros: its `value`, and whether it is differentiated (`perturbed`).

    Examples:

      >>> @jax.custom_vjp
      ... def f(x, y):
      ...     return x * y
      ...
      >>> def f_fwd(x, y):
      ...     assert isinstance(x, jax.custom_derivatives.CustomVJPPrimal)
      ...     print(x.perturbed, y.perturbed)
      ...     return x.value * y.value, y.value
      ...
      >>> f.defvjp(f_fwd, lambda y, ct: (ct * y, None), symbolic_zeros=True)
      >>> jax.grad(f)(2., 3.)
      True False
      Array(3., dtype=float32, weak_type=True)
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: ArrayLike, perturbed: bool) -> None:
        self.value: Any = value
        self.perturbed: Any = perturbed


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values in a tree of `CustomVJPPrimal`, the arguments of a forward rule with symbolic zeros.

    Examples:

      >>> from jax.custom_derivatives import custom_vjp_primal_tree_values
      >>> @jax.custom_vjp
      ... def f(p):
      ...     return p["x"] ** 2
      ...
      >>> def f_fwd(p):
      ...     p = custom_vjp_primal_tree_values(p)
      ...     return f(p), p["x"]
      ...
      >>> f.defvjp(f_fwd, lambda x, ct: ({"x": 2 * x * ct},), symbolic_zeros=True)
      >>> jax.grad(f)({"x": 3.})
      {'x': Array(6., dtype=float32, weak_type=True)}
    """
    is_record = lambda x: isinstance(x, CustomVJPPrimal)
    return pytree.tree_map(lambda x: x.value if is_record(x) else x, tree, is_leaf=is_record)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangents of a pytree of arrays: arrays, or `SymbolicZero`.

    Args:
      val: the pytree.
      symbolic_zeros: whether the zeros are `SymbolicZero`.

    Examples:

      >>> jax.custom_derivatives.zero_from_primal(jnp.array([1., 2.]))
      Array([0., 0.], dtype=float32)
    """
    make = SymbolicZero if symbolic_zeros else zeros_of
    return pytree.tree_map(lambda x: make(aval_of(x).to_tangent_aval()), val)


def _is_zero(x: Any) -> bool:
    return type(x) is SymbolicZero or type(x) is Zero


def _as_symbolic(tangents: Sequence[Any]) -> list:
    return [SymbolicZero(t.aval) if type(t) is Zero else t for t in tangents]


# ---- rules as data


class BoundRule:
    """A function and its derivative rules, bound to static arguments and to the structure of the others.

    `out_tree` is the structure of the results of the function or rule that runs first. The results of the others must
    have the same structure. Two objects are equal if they hold the same functions, equal static arguments and equal
    structures.
    """

    __slots__ = ("count", "fun", "in_tree", "out_tree", "rules", "static", "symbolic_zeros")
    optimize_remat = False

    def __init__(
        self,
        fun: Callable[..., Any],
        rules: tuple[Any, ...],
        static: tuple[Any, ...],
        count: int,
        in_tree: PyTreeDef,
        symbolic_zeros: bool,
    ) -> None:
        self.fun: Callable[..., Any] = fun
        self.rules: tuple[Any, ...] = rules
        self.symbolic_zeros: bool = symbolic_zeros
        self.static: tuple[Any, ...] = static
        self.count: int = count
        self.in_tree: PyTreeDef = in_tree  # static: pairs (position, argument)
        self.out_tree: None = None

    @property
    def name(self) -> Any:
        return function_name(self.fun)

    def _data(self) -> tuple:
        return (self.fun, self.rules, self.static, self.count, self.in_tree, self.symbolic_zeros)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._data() == other._data()

    def __hash__(self) -> int:
        return hash((self.fun, self.rules, self.count, self.in_tree))

    def __getstate__(self) -> Any:
        return {name: getattr(self, name) for name in BoundRule.__slots__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def arguments(self, leaves: Sequence[Any]) -> list[Any]:
        """All arguments of the function, by position."""
        fixed = dict(self.static)
        rest = iter(pytree.tree_unflatten(self.in_tree, leaves))
        return [fixed[i] if i in fixed else next(rest) for i in range(self.count)]

    def fixed(self) -> list[Any]:
        """The static arguments, in the order in which rules take them."""
        return [x for _, x in self.static]

    def primal(self, *leaves: Any) -> list[Any]:
        """The function on leaves."""
        out, tree = pytree.tree_flatten(self.fun(*self.arguments(leaves)))
        self.out_tree = tree
        return out

    def agree(self, tree: PyTreeDef, kind: str, rule: Callable[..., Any]) -> None:
        """Raises if the results of a rule have another structure than those of the function."""
        if self.out_tree is None:
            self.out_tree = tree
        elif self.out_tree != tree:
            raise TypeError(
                f"the {kind} rule {function_name(rule)} of {self.name} gives results of another structure than the"
                f" function:\nexpected {self.out_tree}\ngot      {tree}"
            )


class BoundJVP(BoundRule):
    """The rule of a `custom_jvp` function; `rules` has it as its only entry."""

    __slots__ = ()

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Results and their tangents (or `Zero`), as lists of leaves."""
        (rule,) = self.rules
        if self.symbolic_zeros:
            tangents = _as_symbolic(tangents)
        trees = [pytree.tree_unflatten(self.in_tree, xs) for xs in (primals, tangents)]
        result = rule(*self.fixed(), *trees)
        what = f"the jvp rule {function_name(rule)} of {self.name}"
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(f"{what} returns a pair (result, tangent of the result), got {result!r}")
        outs, tree = pytree.tree_flatten(result[0])
        moved, tangent_tree = pytree.tree_flatten(result[1], is_leaf=_is_zero)
        if tree != tangent_tree:
            raise TypeError(f"{what} gives a result of structure {tree}, but a tangent of structure {tangent_tree}")
        self.agree(tree, "jvp", rule)
        return outs, [_checked_tangent(what, p, t) for p, t in zip(outs, moved, strict=True)]


def _checked_tangent(what: str, p, t):
    wanted = aval_of(p).to_tangent_aval()
    if _is_zero(t) or wanted.dtype == dtypes.float0:
        return Zero(wanted)
    got = aval_of(t)
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise TypeError(
            f"{what} gives a tangent that does not fit the result: expected {wanted.str_short()}, the tangent type of"
            f" {aval_of(p).str_short()}, got {got.str_short()}"
        )
    return t


class BoundVJP(BoundRule):
    """The rules of a `custom_vjp` function: `rules` holds the forward and the backward one."""

    __slots__ = ("in_types", "optimize_remat", "returns")

    def __init__(
        self, *data: Any, in_types: tuple[Any, ...], optimize_remat: bool, returns: str = "cotangents"
    ) -> None:
        super().__init__(*data)
        self.in_types: tuple[Any, ...] = in_types
        self.optimize_remat: bool = optimize_remat
        self.returns: str = returns

    def _data(self) -> tuple:
        return (*super()._data(), self.returns)

    def __getstate__(self) -> Any:
        own = {name: getattr(self, name) for name in BoundVJP.__slots__}
        return {**super().__getstate__(), **own}

    def forward(self, leaves: Sequence[Any], active: Sequence[bool]) -> tuple[list[Any], list[Any], Pullback]:
        """Results, residuals, and the `Pullback` that reads them in the backward pass.

        Args:
          active: which leaves are differentiated.
        """
        rule, _ = self.rules
        if self.symbolic_zeros:
            leaves = [CustomVJPPrimal(x, a) for x, a in zip(leaves, active, strict=True)]
        result = rule(*self.arguments(leaves))
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(
                f"the fwd rule {function_name(rule)} of {self.name} returns a pair (result, residuals), where the"
                f" residuals are what bwd gets, got {result!r}"
            )
        outs, tree = pytree.tree_flatten(result[0])
        residuals, res_tree = pytree.tree_flatten(result[1])
        self.agree(tree, "fwd", rule)
        return outs, residuals, Pullback(self, tree, res_tree, tuple(active))


@dataclass(frozen=True)
class Pullback:
    """A backward rule, with the structures of the residuals and the results of one run of the forward rule."""

    rule: BoundVJP
    out_tree: Any
    res_tree: Any
    active: tuple[bool, ...]

    @property
    def logs(self) -> Any:
        return self.rule.returns != "cotangents"

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """One cotangent per leaf of the arguments. None if it is zero: a `SymbolicZero`, or one of integers.

        If the rule returns None, the cotangent is an array of zeros: the function that computed the argument may have a
        backward rule, which then runs.

        The rule gets arrays, even if the cotangents are Python scalars (`grad` starts from one): it may read shapes.
        """
        bound, (_, bwd) = self.rule, self.rule.rules
        if bound.symbolic_zeros:
            cts = _as_symbolic(cts)
        cts = [ct if _is_zero(ct) or aval_of(ct).dtype == dtypes.float0 else asarray(ct) for ct in cts]
        given = (
            *bound.fixed(),
            pytree.tree_unflatten(self.res_tree, residuals),
            pytree.tree_unflatten(self.out_tree, cts),
        )
        what = f"the bwd rule {function_name(bwd)} of {bound.name}"
        if bound.returns == "nothing":
            accums = [(ValAccum if a else NullAccum)(t) for t, a in zip(bound.in_types, self.active, strict=True)]
            log(_checked_logs(what, bwd(*given, *pytree.tree_unflatten(bound.in_tree, accums))))
            leaves = [accum.freeze() if isinstance(accum, ValAccum) else None for accum in accums]
        else:
            result = bwd(*given)
            if bound.returns == "cotangents and logs":
                result, logs = _pair_with_logs(what, result)
                log(logs)
            leaves = _cotangent_leaves(what, bound, result)
        return [
            zeros_of(cotangent_type(t.to_tangent_aval())) if ct is None and active else _checked_cotangent(what, ct, t)
            for ct, t, active in zip(leaves, bound.in_types, self.active, strict=True)
        ]


def _pair_with_logs(what: str, result: Any) -> tuple[Any, dict]:
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError(f"{what} returns a pair (cotangents, logs), got {result!r}")
    return result[0], _checked_logs(what, result[1])


def _checked_logs(what: str, logs: Any) -> dict:
    if logs is not None and not isinstance(logs, dict):
        raise TypeError(f"{what}: logs are a dict or None, got {logs!r} of type {type(logs).__name__}")
    return logs or {}


def _cotangent_leaves(what: str, bound: BoundVJP, result: Any) -> list:
    """The leaves of a backward rule's result, which is a tuple with an entry, or None, per argument."""
    arguments = pytree.tree_unflatten(bound.in_tree, list(bound.in_types))
    if isinstance(result, list) and bound.in_types:
        result = tuple(result)
    if not isinstance(result, tuple):
        raise TypeError(f"{what} returns a tuple, one cotangent or None per differentiable argument, got {result!r}")
    if len(result) != len(arguments):
        raise TypeError(
            f"{what} must return {len(arguments)} cotangents, one or None per argument; it returned {len(result)}"
        )
    is_none = lambda x: x is None or _is_zero(x)
    flat: list[Any] = []

    def collect(ct, argument):
        count = len(pytree.tree_leaves(argument))
        leaves = [ct] * count if is_none(ct) else pytree.tree_leaves(ct, is_leaf=is_none)
        if len(leaves) != count:
            raise ValueError
        flat.extend(leaves)

    try:
        pytree.tree_map(collect, result, arguments, is_leaf=is_none)
        if len(flat) != len(bound.in_types):
            raise ValueError
    except (ValueError, TypeError, KeyError):
        raise TypeError(
            f"{what}: cotangents of structure {pytree.tree_structure(result)}, expected {arguments}"
        ) from None
    return flat


def _checked_cotangent(what: str, ct, aval: AbstractValue):
    wanted = aval.to_tangent_aval()
    if ct is None or _is_zero(ct) or (wanted.is_array and wanted.dtype == dtypes.float0):
        return None
    got = aval_of(ct)
    if got.is_high or wanted.is_high:
        if got == wanted:
            return wanted.as_operand(ct)
    elif (got.shape == wanted.shape and got.dtype == wanted.dtype) or flags.disable_bwd_checks.value:
        return ct
    elif got.shape == wanted.shape and got.weak_type:
        return convert_element_type(ct, wanted.dtype)
    raise ValueError(
        f"{what} gives a cotangent that does not fit its argument: expected {wanted.str_short()}, the tangent type of"
        f" {aval.str_short()}, got {got.str_short()}"
    )


# ---- binding arguments


_BY_KEYWORD = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)


def _bind_arguments(fun: Callable, args: tuple, kwargs: dict) -> tuple:
    """All arguments by position, defaults included, as rules take them."""
    try:
        signature = signature_of(fun)
    except (TypeError, ValueError):
        if kwargs:
            raise TypeError(f"the signature of {function_name(fun)} is unknown: pass no keyword arguments") from None
        return args
    problem = f"rules take arguments by position, and those of {function_name(fun)} cannot all be given so"
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as e:
        raise TypeError(f"{problem}: {e}") from None
    # Arguments left to their defaults are not passed on.
    by_keyword = [n for n in bound.arguments if signature.parameters[n].kind in _BY_KEYWORD]
    if by_keyword:
        raise TypeError(f"{problem}: {', '.join(sorted(by_keyword))} can be given by keyword only")
    bound.apply_defaults()
    return bound.args


def _number_of_arguments(fun: Callable) -> int:
    """The number of arguments of every call, all by position; -1 if calls differ or it is unknown."""
    try:
        parameters = signature_of(fun).parameters.values()
    except (TypeError, ValueError):
        return -1
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return len(parameters) if all(p.kind in by_position and p.default is p.empty for p in parameters) else -1


class _Custom(Generic[P, R_co]):
    """Base of functions with derivative rules: their static arguments, and their call.

    The classes have no annotations: an instance has those of its function, and Python 3.14 looks at the class first.
    """

    def __init__(
        self, fun: Callable[P, R_co], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ) -> None:
        functools.update_wrapper(self, fun)
        self.fun: Callable[..., Any] = fun
        self.nondiff_argnums: tuple[int, ...] = positions_of(nondiff_argnums, f"{type(self).__name__}: nondiff_argnums")
        self.nondiff_argnames: Sequence[str] = nondiff_argnames
        self.symbolic_zeros: bool = False
        self._number: int | None = None  # that of `_number_of_arguments`, from the first call on

    def __getattr__(self, name: str) -> Callable[..., Any]:
        # The function may have rules of other kinds: `custom_vjp(custom_vmap(f))` accepts the definitions of both.
        if name in ("def_vmap", "defjvp", "defjvps", "defvjp") and "fun" in self.__dict__:
            return getattr(self.fun, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __get__(self, instance: Any, owner: type | None = None) -> Callable[..., Any]:
        return self if instance is None else functools.partial(self, instance)

    def _arguments(self, args: tuple, kwargs: dict) -> tuple:
        """The arguments of a call, by position. The signature is read at the first call: that takes long."""
        if self._number is None:
            self._number = _number_of_arguments(self.fun)
        return args if len(args) == self._number and not kwargs else _bind_arguments(self.fun, args, kwargs)

    def _static_positions(self, count: int) -> set[int]:
        if not self.nondiff_argnums and not self.nondiff_argnames:
            return set()
        what = f"{type(self).__name__} of {function_name(self.fun)}: nondiff_argnums"
        positions = set(normalized(self.nondiff_argnums, count, what))
        if self.nondiff_argnames:
            names = list(signature_of(self.fun).parameters)
            for name in self.nondiff_argnames:
                if name not in names[:count]:
                    raise ValueError(
                        f"{type(self).__name__} of {function_name(self.fun)}: nondiff_argnames has {name!r}; the parameters"
                        f" that were given by position are {', '.join(names[:count])}"
                    )
                positions.add(names.index(name))
        return positions

    def _bound(self, args: tuple, rules: tuple) -> tuple[list, tuple]:
        """(leaves of the arguments that are differentiated, the arguments of `BoundRule`)."""
        chosen = self._static_positions(len(args))
        static = tuple((i, args[i]) for i in sorted(chosen))
        leaves, in_tree = pytree.tree_flatten(tuple(a for i, a in enumerate(args) if i not in chosen))
        return leaves, (self.fun, rules, static, len(args), in_tree, self.symbolic_zeros)


class custom_jvp(_Custom[P, R_co]):
    """A function with a rule for forward mode (and, by transposition, for reverse mode).

    Args:
      fun: the function.
      nondiff_argnums, nondiff_argnames: arguments that are not arrays; the rule gets them first.

    Use ``@f.defjvp`` on the rule ``(primals, tangents) -> (result, tangent of the result)``.

    Examples:

      >>> @jax.custom_jvp
      ... def f(x):
      ...     return jnp.sin(x)
      ...
      >>> @f.defjvp
      ... def f_jvp(primals, tangents):
      ...     (x,), (t,) = primals, tangents
      ...     return f(x), 10 * jnp.cos(x) * t
      ...
      >>> jax.grad(f)(0.)
      Array(10., dtype=float32, weak_type=True)
    """

    jvp = None  # type: Callable[..., Any] | None  # no annotation, see `_Custom`

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule.

        Args:
          jvp: ``(*nondiff, primals, tangents) -> (result, tangent)``, linear in the tangents.
          symbolic_zeros: pass tangents that are zero as `SymbolicZero` instead of arrays of zeros.

        Returns:
          `jvp`.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule per argument, ``(t, ans, *primals) -> tangent``, or None for a zero derivative."""
        if self.nondiff_argnums or self.nondiff_argnames:
            fixed = self.nondiff_argnums or self.nondiff_argnames
            raise TypeError(
                "defjvps takes a rule for each argument, so it does not support nondiff_argnums and nondiff_argnames, got"
                f" {fixed}; use defjvp"
            )

        def jvp(primals, tangents):
            if len(jvps) != len(primals):
                raise TypeError(
                    f"defjvps of {function_name(self.fun)} takes one rule (or None) per argument, got {len(jvps)} rules for"
                    f" {len(primals)} arguments"
                )
            result = self(*primals)
            terms = [rule(t, result, *primals) for rule, t in zip(jvps, tangents, strict=True) if rule is not None]
            if not terms:
                return result, zero_from_primal(result)
            return result, functools.reduce(lambda a, b: pytree.tree_map(add_tangents, a, b), terms)

        self.defjvp(jvp)

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        if self.jvp is None:
            raise AttributeError(
                coded(
                    "BX-CUSTOM-RULE", f"the custom_jvp function {function_name(self.fun)} has no rule yet; use defjvp"
                )
            )
        leaves, data = self._bound(self._arguments(args, kwargs), (self.jvp,))
        rule = BoundJVP(*data)
        outs = custom_jvp_call_p.call(rule, leaves)
        return pytree.tree_unflatten(rule.out_tree, outs)


_NO_REMAT_RULES = (
    "there are no rules for the recomputation under jax.checkpoint, as upstream has none without its option jax_custom_vjp3."
    " Name what is to be saved with jax.ad_checkpoint.checkpoint_name, and save it by a policy."
)


class custom_vjp(_Custom[P, R_co]):
    """A function with a rule for reverse mode.

    Args:
      fun: the function.
      nondiff_argnums, nondiff_argnames: arguments that are not arrays; `fwd` gets them in place,
        `bwd` gets them first.

    Use ``f.defvjp(fwd, bwd)``: ``fwd(*args) -> (result, residuals)`` and
    ``bwd(*nondiff, residuals, ct) -> tuple of cotangents``, one per differentiable argument.

    Examples:

      >>> @jax.custom_vjp
      ... def f(x, y):
      ...     return x * y
      ...
      >>> def f_fwd(x, y):
      ...     return f(x, y), (x, y)
      ...
      >>> def f_bwd(saved, ct):
      ...     x, y = saved
      ...     return 10 * ct * y, 10 * ct * x
      ...
      >>> f.defvjp(f_fwd, f_bwd)
      >>> jax.grad(f)(2., 3.)
      Array(30., dtype=float32, weak_type=True)
    """

    fwd = None  # type: Callable[..., Any] | None
    bwd = None  # type: Callable[..., Any] | None
    optimize_remat = False  # type: bool
    _returns = "cotangents"  # the kind of result of `bwd`

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Set the rules.

        Args:
          fwd: ``(*args) -> (result, residuals)``.
          bwd: ``(*nondiff, residuals, ct) -> cotangents``; None stands for a zero cotangent.
          symbolic_zeros: `fwd` gets each array as an object with `.value` and `.perturbed`, and
            `bwd` gets zero cotangents as `SymbolicZero`.
          optimize_remat: where `checkpoint` drops the residuals, the function is called instead of `fwd`.
          generic_batching: let `vmap` take results that do not depend on the mapped argument; they are taken in any case,
            each example with its own cotangent of them.
        """
        self._returns = "cotangents"
        self._define(fwd, bwd, symbolic_zeros, optimize_remat)

    def defvjp_with_logs(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Set rules whose backward rule returns logs together with the cotangents.

        Args:
          fwd, symbolic_zeros, optimize_remat, generic_batching: as for `defvjp`.
          bwd: ``(*nondiff, residuals, ct) -> (cotangents, logs)``. The logs are a dict of pytrees of arrays, or None.
            ``vjp_fun.with_logs(ct)`` returns them, where `jax.vjp` returns `vjp_fun`. All other calls drop them.
        """
        self._returns = "cotangents and logs"
        self._define(fwd, bwd, symbolic_zeros, optimize_remat)

    def defvjp_with_accums(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Set rules whose backward rule adds cotangents to accumulators.

        Args:
          fwd, symbolic_zeros, optimize_remat, generic_batching: as for `defvjp`.
          bwd: ``(*nondiff, residuals, ct, *accums) -> logs``. There is a pytree of `ValAccum` (`NullAccum` where an argument is
            not differentiated) for each argument, to which `bwd` adds cotangents by ``accum(ct)``. The logs are a dict or
            None, as for `defvjp_with_logs`.
        """
        self._returns = "nothing"
        self._define(fwd, bwd, symbolic_zeros, optimize_remat)

    def defremat(
        self, fwd: Callable[..., Any], rem: Callable[..., Any], bwd: Callable[..., Any], generic_batching: bool = False
    ) -> None:
        """Raises NotImplementedError: see `_NO_REMAT_RULES`."""
        raise NotImplementedError(f"custom_vjp.defremat: {_NO_REMAT_RULES}")

    def defremat_with_logs(
        self, fwd: Callable[..., Any], rem: Callable[..., Any], bwd: Callable[..., Any], generic_batching: bool = False
    ) -> None:
        """Raises NotImplementedError: see `_NO_REMAT_RULES`."""
        raise NotImplementedError(f"custom_vjp.defremat_with_logs: {_NO_REMAT_RULES}")

    def _define(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool, optimize_remat: bool) -> None:
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros = symbolic_zeros
        self.optimize_remat = optimize_remat
        if optimize_remat and symbolic_zeros:
            raise NotImplementedError(
                "custom_vjp: optimize_remat=True and symbolic_zeros=True cannot be combined; set one of them"
            )

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        name = function_name(self.fun)
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                coded("BX-CUSTOM-RULE", f"the custom_vjp function {name} has no rules yet; set them with defvjp")
            )
        args = self._arguments(args, kwargs)
        if config.enable_checks.value:
            _bind_arguments(self.fwd, args, {})
        leaves, data = self._bound(args, (self.fwd, self.bwd))
        types = tuple([aval_of(x) for x in leaves])
        rule = BoundVJP(*data, in_types=types, optimize_remat=self.optimize_remat, returns=self._returns)
        if any(isinstance(x, Tracer) for x in pytree.tree_leaves(rule.fixed())):
            raise UnexpectedTracerError(
                f"the custom_vjp function {name} was called with a traced array in a position that nondiff_argnums names."
                " Such arguments are for what is not an array, like functions: the rules are kept until the backward pass,"
                " when the tracer is no more. Pass the array as an ordinary argument, and return None as its cotangent."
            )
        outs = custom_vjp_call_p.call(rule, leaves)
        return pytree.tree_unflatten(rule.out_tree, outs)


@overload
def custom_gradient(
    fun: Callable[P, tuple[R, Callable[..., Any]]],
    *,
    with_logs: bool = False,
    remat: bool = False,
    with_accums: Any = None,
) -> Callable[P, R]: ...
@overload
def custom_gradient(
    *, with_logs: bool = False, remat: bool = False, with_accums: Any = None
) -> Callable[[Callable[P, tuple[R, Callable[..., Any]]]], Callable[P, R]]: ...
def custom_gradient(
    fun: Callable[..., Any] | None = None, *, with_logs: bool = False, remat: bool = False, with_accums: Any = None
) -> Any:
    """A function with a reverse-mode rule, given as one function.

    Args:
      fun: ``(*args) -> (result, vjp_fun)`` with ``vjp_fun(ct) -> cotangents``, one per argument. Without it, returns a
        decorator.
      with_logs: `vjp_fun` returns a pair (cotangents, logs), see `custom_vjp.defvjp_with_logs`.
      with_accums: `vjp_fun` is called as ``vjp_fun(ct, *accums) -> logs or None``, see `custom_vjp.defvjp_with_accums`. A
        class of accumulators (`ValAccum`, `RefAccum`), or a tree of classes that is a prefix of the tuple of arguments: an
        argument that is differentiated has an accumulator of its class. An argument that is not has a `NullAccum`.

    Returns:
      The function ``args -> result``.

    Raises:
      NotImplementedError: `remat` is set.
      ValueError: both `with_logs` and `with_accums` are given.

    Examples:

      >>> @jax.custom_gradient
      ... def clipped(x):
      ...     return x, lambda ct: (jnp.clip(ct, -1, 1),)
      ...
      >>> jax.grad(lambda x: 100 * clipped(x))(2.)
      Array(1., dtype=float32, weak_type=True)
    """
    if remat:
        raise NotImplementedError(f"custom_gradient(remat=True): {_NO_REMAT_RULES}")
    if with_logs and with_accums is not None:
        raise ValueError(
            "custom_gradient: a vjp_fun with accumulators returns its logs in any case; leave with_logs out"
        )
    if fun is None:
        return functools.partial(custom_gradient, with_logs=with_logs, with_accums=with_accums)

    @custom_vjp
    def wrapped(*args):
        return fun(*args)[0]

    what = f"the backward function of {function_name(fun)}"

    def fwd(*args):
        is_record = lambda x: isinstance(x, CustomVJPPrimal)
        perturbed = pytree.tree_map(lambda x: x.perturbed, args, is_leaf=is_record)
        args = custom_vjp_primal_tree_values(args)
        result, rule = fun(*args)
        leaves, tree = pytree.tree_flatten(result)

        def flat(*cts):
            ct = pytree.tree_unflatten(tree, cts)
            if with_accums is not None:
                return pytree.tree_flatten(_accumulated(what, rule, ct, args, perturbed, with_accums))
            out, logs = _pair_with_logs(what, rule(ct)) if with_logs else (rule(ct), {})
            single = not isinstance(out, tuple) and (len(args) == 1 or not isinstance(out, list))
            return pytree.tree_flatten(((out,) if single else tuple(out), logs))

        program, out_tree = staging.trace_to_jaxpr(flat, [aval_of(x).to_tangent_aval() for x in leaves])
        program, consts = staging.close_over(program)
        return result, pytree.Partial(_ProgramOfTrees(program, out_tree), *consts)

    def bwd(residuals, ct):
        leaves = pytree.tree_leaves(ct, is_leaf=_is_zero)
        return residuals(*(zeros_of(x.aval) if _is_zero(x) else x for x in leaves))

    wrapped.defvjp_with_logs(fwd, bwd, symbolic_zeros=True)
    return functools.wraps(fun)(wrapped)


def _accumulated(what: str, rule: Callable, ct: Any, args: tuple, perturbed: tuple, kinds: Any) -> tuple[tuple, dict]:
    """The cotangents that a backward function adds to accumulators, zeros where it adds none, and its logs."""
    leaves, tree = pytree.tree_flatten(args)
    chosen: list[Any] = []
    is_kind = lambda x: isinstance(x, type)
    pytree.tree_map(
        lambda kind, part: chosen.extend([kind] * len(pytree.tree_leaves(part))), kinds, args, is_leaf=is_kind
    )
    for kind in chosen:
        if not is_kind(kind) or not issubclass(kind, GradAccum):
            raise TypeError(f"{what}: with_accums are classes of accumulators, like ValAccum; got {kind!r}")
    accums = [
        (kind if p and has_tangent(aval_of(x).dtype) else NullAccum)(aval_of(x))
        for kind, p, x in zip(chosen, pytree.tree_leaves(perturbed), leaves, strict=True)
    ]
    logs = _checked_logs(what, rule(ct, *pytree.tree_unflatten(tree, accums)))
    found = [Zero(a.aval.to_tangent_aval()) if isinstance(a, NullAccum) else a.freeze() for a in accums]
    return pytree.tree_unflatten(tree, [instantiate(t) for t in found]), logs


@dataclass(frozen=True, eq=False)
class _ProgramOfTrees:
    """A program whose results are the leaves of a tree."""

    program: Any
    out_tree: Any

    def __call__(self, *leaves: ArrayLike) -> tuple[tuple[Any, ...], dict[Any]]:
        return pytree.tree_unflatten(self.out_tree, run(self.program, *leaves))
