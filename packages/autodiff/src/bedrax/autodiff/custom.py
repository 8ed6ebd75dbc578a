"""Functions with derivative rules of their own, and `checkpoint`.

`custom_jvp`, `custom_vjp`, `custom_gradient`, `closure_convert`, `checkpoint` (`remat`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from bedrax import pytree
from bedrax.autodiff.tables import Zero, add_tangents, instantiate
from bedrax.core import config, dtypes, staging
from bedrax.core.avals import aval_of
from bedrax.core.ir import DebugInfo, run
from bedrax.core.source import api_boundary
from bedrax.core.staging import function_name
from bedrax.core.tracing import Tracer
from bedrax.lax.primitives.calls import custom_jvp_call_p, custom_vjp_call_p, remat_p
from bedrax.lax.primitives.shaping import zeros_of


class SymbolicZero:
    """A tangent that is known to be zero, as rules with ``symbolic_zeros=True`` see it. `aval` is its type."""

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: len(self.aval.shape))

    def __repr__(self):
        return f"SymbolicZero({self.aval.short()})"


class CustomVJPPrimal:
    """An argument of a forward rule with symbolic zeros: its `value`, and whether it is differentiated (`perturbed`)."""

    __slots__ = ("perturbed", "value")

    def __init__(self, value, perturbed):
        self.value = value
        self.perturbed = perturbed


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values in a tree of arguments, as a forward rule with symbolic zeros gets it."""
    is_record = lambda x: isinstance(x, CustomVJPPrimal)
    return pytree.tree_map(lambda x: x.value if is_record(x) else x, tree, is_leaf=is_record)


def _bind_arguments(fun: Callable, args: tuple, kwargs: dict) -> tuple:
    """All arguments by position, defaults included, as rules see them."""
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        if kwargs:
            raise TypeError(
                f"the signature of {function_name(fun)} is unknown, so it takes no keyword arguments here"
            ) from None
        return args
    problem = (
        f"The input arguments to {function_name(fun)} could not be resolved to positional-only arguments"
    )
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as e:
        raise TypeError(f"{problem}: {e}") from None
    if bound.kwargs:  # those that have defaults and are not given are not passed on
        raise TypeError(
            f"{problem}: {', '.join(sorted(bound.kwargs))} can be given by keyword only, and custom derivative rules take"
            " positional arguments."
        )
    bound.apply_defaults()
    return bound.args


def _positions(fun: Callable, argnums: Sequence[int], argnames: Sequence[str], count: int) -> tuple[int, ...]:
    if isinstance(argnums, int):
        argnums = (argnums,)
    out = [n % count if count else n for n in argnums]
    if argnames:
        names = list(inspect.signature(fun).parameters)
        out += [names.index(n) for n in argnames]
    return tuple(sorted(set(out)))


def _without_tracers(name: str, values) -> None:
    for x in values:
        if isinstance(x, Tracer):
            raise _nondiff_error(name)


def _nondiff_error(name: str) -> Exception:
    from bedrax.core.errors import UnexpectedTracerError

    return UnexpectedTracerError(
        f"Found a JAX Tracer object passed as an argument to a custom_vjp function ({name}) in a position indicated by"
        " nondiff_argnums as non-differentiable. Tracers cannot be passed as non-differentiable arguments to custom_vjp"
        " functions; instead, nondiff_argnums should only be used for arguments that can't be or contain JAX tracers,"
        " e.g. function-valued arguments. In particular, array-valued arguments should typically not be indicated as"
        " nondiff_argnums."
    )


class custom_jvp:
    """A function with a rule for forward mode (and, by transposition, for reverse mode).

    Args:
      fun: the function.
      nondiff_argnums, nondiff_argnames: arguments that are no arrays; the rule gets them first.

    Use ``@f.defjvp`` on the rule ``(primals, tangents) -> (result, tangent of the result)``.
    """

    def __init__(
        self, fun: Callable, nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = nondiff_argnums
        self.nondiff_argnames = nondiff_argnames
        self.jvp: Callable | None = None
        self.symbolic_zeros = False

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
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

    def defjvps(self, *jvps: Callable | None) -> None:
        """Set one rule per argument, ``(t, ans, *primals) -> tangent``, or None for a zero derivative."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals, tangents):
            result = self(*primals)
            terms = [
                rule(t, result, *primals) for rule, t in zip(jvps, tangents, strict=True) if rule is not None
            ]
            if not terms:
                return result, pytree.tree_map(lambda x: instantiate(Zero.of(x)), result)
            total = terms[0]
            for term in terms[1:]:
                total = pytree.tree_map(add_tangents, total, term)
            return result, total

        self.defjvp(jvp)

    @api_boundary
    def __call__(self, *args, **kwargs):
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {function_name(self.fun)} using defjvp."
            )
        args = _bind_arguments(self.fun, args, kwargs)
        static = _positions(self.fun, self.nondiff_argnums, self.nondiff_argnames, len(args))
        chosen = set(static)
        leaves, in_tree = pytree.tree_flatten(tuple(a for i, a in enumerate(args) if i not in chosen))
        fixed, count = {i: args[i] for i in static}, len(args)
        del args  # what is kept below must not keep tracers alive
        out_trees: list = []

        def flat(*values):
            rest = iter(pytree.tree_unflatten(in_tree, values))
            out = self.fun(*(fixed[i] if i in chosen else next(rest) for i in range(count)))
            out_leaves, tree = pytree.tree_flatten(out)
            out_trees.append(tree)
            return out_leaves

        def rule(primals, tangents):
            if self.symbolic_zeros:
                tangents = [SymbolicZero(t.aval) if type(t) is Zero else t for t in tangents]
            result = self.jvp(
                *fixed.values(),
                pytree.tree_unflatten(in_tree, primals),
                pytree.tree_unflatten(in_tree, tangents),
            )
            return _check_jvp_result(self, result, out_trees)

        outs = custom_jvp_call_p.bind(
            *leaves, call_jaxpr=flat, jvp_jaxpr_fun=rule, num_consts=0, symbolic_zeros=self.symbolic_zeros,
            debug_info=DebugInfo(function_name(self.fun)),
        )  # fmt: skip
        return pytree.tree_unflatten(out_trees[-1], outs)


def _check_jvp_result(f: custom_jvp, result, out_trees) -> tuple[list, list]:
    name, rule_name = function_name(f.fun), function_name(f.jvp)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError(
            f"Custom JVP rule {rule_name} for function {name} must produce a pair (list or tuple of length two)"
            f" representing primal and tangent outputs, but got {result!r}."
        )
    primal, tangent = result
    primal_leaves, primal_tree = pytree.tree_flatten(primal)
    is_zero = lambda x: type(x) in (SymbolicZero, Zero)
    tangent_leaves, tangent_tree = pytree.tree_flatten(tangent, is_leaf=is_zero)
    if primal_tree != tangent_tree:
        raise TypeError(
            f"Custom JVP rule {rule_name} for function {name} must produce primal and tangent outputs with equal"
            f" container (pytree) structures, but got {primal_tree} and {tangent_tree} respectively."
        )
    if out_trees and out_trees[-1] != primal_tree:
        raise TypeError(
            f"Custom JVP rule {rule_name} for function {name} must produce a pair (list or tuple of length two) where"
            " the first element represents the primal output (equal in value to the output of the custom_jvp-decorated"
            f" function {name}, and in particular of the same container/pytree structure), but instead the JVP rule"
            f" output's first element had container/pytree structure:\n    {primal_tree}\nwhile the"
            f" custom_jvp-decorated function {name} had output container/pytree structure:\n    {out_trees[-1]}."
        )
    if not out_trees:
        out_trees.append(primal_tree)
    tangents = []
    for p, t in zip(primal_leaves, tangent_leaves, strict=True):
        if is_zero(t):
            tangents.append(Zero(t.aval))
            continue
        wanted = aval_of(p).to_tangent_aval()
        if wanted.dtype == dtypes.float0:
            tangents.append(Zero(wanted))
            continue
        got = aval_of(t)
        if got.shape != wanted.shape or got.dtype != wanted.dtype:
            raise TypeError(
                f"Custom JVP rule {rule_name} for function {name} must produce primal and tangent outputs with"
                " corresponding shapes and dtypes. Expected"
                f" {wanted.str_short()} (tangent type of {aval_of(p).str_short()}) but got {got.str_short()}."
            )
        tangents.append(t)
    return primal_leaves, tangents


class custom_vjp:
    """A function with a rule for reverse mode.

    Args:
      fun: the function.
      nondiff_argnums, nondiff_argnames: arguments that are no arrays; `fwd` gets them in place,
        `bwd` gets them first.

    Use ``f.defvjp(fwd, bwd)``: ``fwd(*args) -> (result, residuals)`` and
    ``bwd(*nondiff, residuals, ct) -> tuple of cotangents``, one per differentiable argument.
    """

    def __init__(
        self, fun: Callable, nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = nondiff_argnums
        self.nondiff_argnames = nondiff_argnames
        self.fwd: Callable | None = None
        self.bwd: Callable | None = None
        self.symbolic_zeros = False
        self.optimize_remat = False

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def defvjp(
        self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False, optimize_remat: bool = False
    ) -> None:
        """Set the rules.

        Args:
          fwd: ``(*args) -> (result, residuals)``.
          bwd: ``(*nondiff, residuals, ct) -> cotangents``; None stands for a zero cotangent.
          symbolic_zeros: `fwd` gets each array as an object with `.value` and `.perturbed`, and
            `bwd` gets zero cotangents as `SymbolicZero`.
          optimize_remat: where `checkpoint` drops the residuals, the function is called instead of `fwd`.
        """
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros, self.optimize_remat = symbolic_zeros, optimize_remat
        if optimize_remat and symbolic_zeros:
            raise NotImplementedError("remat optimization for custom_vjp does not support symbolic zeros")

    @api_boundary
    def __call__(self, *args, **kwargs):
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {function_name(self.fun)} using defvjp."
            )
        args = _bind_arguments(self.fun, args, kwargs)
        if config.enable_checks.value:
            _bind_arguments(self.fwd, args, {})
        static = _positions(self.fun, self.nondiff_argnums, self.nondiff_argnames, len(args))
        chosen = set(static)
        fixed, count = {i: args[i] for i in static}, len(args)
        _without_tracers(function_name(self.fun), pytree.tree_leaves(fixed))
        leaves, in_tree = pytree.tree_flatten(tuple(a for i, a in enumerate(args) if i not in chosen))
        del args  # what is kept below must not keep tracers alive
        out_trees: list = []
        res_trees: list = []

        def merged(values):
            rest = iter(values)
            return (fixed[i] if i in chosen else next(rest) for i in range(count))

        def flat(*values):
            out_leaves, tree = pytree.tree_flatten(self.fun(*merged(pytree.tree_unflatten(in_tree, values))))
            out_trees.append(tree)
            return out_leaves

        def fwd(*values, active=None):
            if self.symbolic_zeros:
                flags = active if active is not None else (True,) * len(values)
                values = [CustomVJPPrimal(v, a) for v, a in zip(values, flags, strict=True)]
            result = self.fwd(*merged(pytree.tree_unflatten(in_tree, values)))
            out_leaves, res_leaves, res_tree = _check_fwd_result(self, result, out_trees)
            res_trees.append(res_tree)
            return out_leaves, res_leaves

        def bwd(residuals, cts):
            out_tree, res_tree = out_trees[-1], res_trees[-1]
            if self.symbolic_zeros:
                cts = [SymbolicZero(ct.aval) if type(ct) is Zero else ct for ct in cts]
            result = self.bwd(
                *fixed.values(),
                pytree.tree_unflatten(res_tree, residuals),
                pytree.tree_unflatten(out_tree, cts),
            )
            return _check_bwd_result(self, result, in_tree, leaves_types)

        leaves_types = [aval_of(x) for x in leaves]
        outs = custom_vjp_call_p.bind(
            *leaves, call_jaxpr=flat, fwd_jaxpr_thunk=fwd, bwd=bwd, num_consts=0, symbolic_zeros=self.symbolic_zeros,
            optimize_remat=self.optimize_remat, debug_info=DebugInfo(function_name(self.fun)),
        )  # fmt: skip
        return pytree.tree_unflatten(out_trees[-1], outs)


def _check_fwd_result(f: custom_vjp, result, out_trees):
    name, rule_name = function_name(f.fun), function_name(f.fwd)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError(
            f"Custom VJP fwd rule {rule_name} for function {name} must produce a pair (list or tuple of length two)"
            f" where the first element represents the primal output (equal to those of the custom_vjp-decorated function"
            f" {name}) and the second element represents residuals (i.e. values stored from the forward pass for use on"
            f" the backward pass), but instead of a pair the fwd rule {rule_name} produced {result!r}."
        )
    out_leaves, out_tree = pytree.tree_flatten(result[0])
    res_leaves, res_tree = pytree.tree_flatten(result[1])
    if out_trees and out_trees[-1] != out_tree:
        raise TypeError(
            f"Custom VJP fwd rule {rule_name} for function {name} must produce a pair (list or tuple of length two) where"
            " the first element represents the primal output (equal to the output of the custom_vjp-decorated function"
            f" {name}), but its container/pytree structure is\n    {out_tree}\nwhile that of {name} is\n    {out_trees[-1]}."
        )
    out_trees.append(out_tree)
    return out_leaves, res_leaves, res_tree


def _check_bwd_result(f: custom_vjp, result, in_tree, types) -> list:
    name, rule_name = function_name(f.fun), function_name(f.bwd)
    if isinstance(result, list) and in_tree.num_leaves:
        result = tuple(result)
    if not isinstance(result, tuple):
        raise TypeError(
            f"Custom VJP bwd rule {rule_name} must produce a tuple with one entry per differentiable argument of {name},"
            f" but got {result!r}."
        )
    is_none = lambda x: x is None or type(x) in (SymbolicZero, Zero)
    dummy = pytree.tree_unflatten(in_tree, list(types))
    if len(result) != len(dummy):
        raise TypeError(
            f"Custom VJP bwd rule {rule_name} for function {name} must produce a tuple of length equal to the number of"
            f" differentiable arguments, which is {len(dummy)}, but got a tuple of length {len(result)}."
        )
    flat: list = []

    def collect(ct, argument):
        count = len(pytree.tree_leaves(argument))
        if is_none(ct):
            flat.extend([None] * count)
            return
        leaves = pytree.tree_leaves(ct, is_leaf=is_none)
        if len(leaves) != count:
            raise ValueError
        flat.extend(leaves)

    try:
        pytree.tree_map(collect, result, dummy, is_leaf=is_none)
        if len(flat) != len(types):
            raise ValueError
    except (ValueError, TypeError, KeyError):
        raise TypeError(
            f"Custom VJP bwd rule {rule_name} for function {name} must produce a tuple with the same container (pytree)"
            f" structure as the differentiable arguments {dummy}, but got {pytree.tree_structure(result)}."
        ) from None
    out = []
    for ct, aval in zip(flat, types, strict=True):
        wanted = aval.to_tangent_aval()
        if ct is None or type(ct) in (SymbolicZero, Zero) or wanted.dtype == dtypes.float0:
            out.append(None)
            continue
        got = aval_of(ct)
        if got.shape != wanted.shape or got.dtype != wanted.dtype:
            if got.shape == wanted.shape and got.weak_type:
                from bedrax.lax.primitives.conversions import convert_element_type

                out.append(convert_element_type(ct, wanted.dtype))
                continue
            raise ValueError(
                f"Custom VJP bwd rule {rule_name} for function {name} must produce cotangents of the types of the"
                f" arguments: expected {wanted.str_short()} (tangent type of {aval.str_short()}), got {got.str_short()}."
            )
        out.append(ct)
    return out


def custom_gradient(fun: Callable) -> Callable:
    """A function with a reverse-mode rule, given as one function.

    Args:
      fun: ``(*args) -> (result, vjp_fun)`` with ``vjp_fun(ct) -> cotangents``, one per argument.

    Returns:
      The function ``args -> result``.
    """

    @custom_vjp
    def wrapped(*args):
        return fun(*args)[0]

    def fwd(*args):
        result, rule = fun(*args)
        types = [aval_of(x) for x in pytree.tree_leaves(result)]
        tree = pytree.tree_structure(result)

        def flat(*cts):
            out = rule(pytree.tree_unflatten(tree, cts))
            out = (
                out if isinstance(out, tuple | list) and len(args) != 1 or isinstance(out, tuple) else (out,)
            )
            return pytree.tree_flatten(tuple(out))

        program, out_tree = staging.trace_to_jaxpr(flat, [t.to_tangent_aval() for t in types])
        program, consts = staging.close_over(program)
        return result, _Residuals(consts, program, out_tree)

    def bwd(residuals, ct):
        return pytree.tree_unflatten(
            residuals.tree, run(residuals.program, *residuals.consts, *pytree.tree_leaves(ct))
        )

    wrapped.defvjp(fwd, bwd)
    return functools.wraps(fun)(wrapped)


class _Residuals:
    """Constants of a staged rule, as a pytree."""

    __slots__ = ("consts", "program", "tree")

    def __init__(self, consts, program, tree):
        self.consts, self.program, self.tree = consts, program, tree


pytree.register_pytree_node(
    _Residuals,
    lambda r: (tuple(r.consts), (r.program, r.tree)),
    lambda static, consts: _Residuals(list(consts), *static),
)


def closure_convert(fun: Callable, *example_args) -> tuple[Callable, list]:
    """Make what a function closes over explicit.

    Args:
      fun: a function that may close over tracers.
      example_args: arguments like those it will be called with.

    Returns:
      (function of the arguments and the closed-over values, list of those values). Values that
      are not being differentiated stay inside.
    """
    leaves, in_tree = pytree.tree_flatten((example_args, {}))
    jaxpr, out_tree = staging.trace_to_jaxpr(staging.flat_fun(fun, in_tree), [aval_of(x) for x in leaves])
    moved = [isinstance(c, Tracer) and dtypes.is_inexact(aval_of(c).dtype) for c in jaxpr.consts]
    hoisted = [c for c, m in zip(jaxpr.consts, moved, strict=True) if m]

    def converted(*args):
        own, values = args[: len(args) - len(hoisted)], iter(args[len(args) - len(hoisted) :])
        given, tree = pytree.tree_flatten((own, {}))
        if tree != in_tree:
            raise TypeError(
                f"The inputs to the closure produced by closure_convert must have the same Pytree structure as the example arguments: expected {in_tree}, got {tree}"
            )
        consts = [next(values) if m else c for c, m in zip(jaxpr.consts, moved, strict=True)]
        from bedrax.core.ir import eval_jaxpr

        return pytree.tree_unflatten(out_tree, eval_jaxpr(jaxpr, consts, *given))

    return converted, hoisted


def checkpoint(
    fun: Callable | None = None,
    *,
    prevent_cse: bool = True,
    policy: Callable | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: bool = False,
) -> Callable:
    """Recompute a function's intermediate values in the backward pass instead of keeping them.

    Args:
      fun: takes and returns pytrees of arrays. Without it, returns a decorator.
      prevent_cse: keep the compiler from merging the recomputation with the forward pass.
      policy: which intermediate values are kept; see `checkpoint_policies`. Default: none.
      static_argnums, static_argnames: arguments that are passed as they are.

    Returns:
      A function with the same values and derivatives.
    """
    if concrete:
        raise NotImplementedError(
            "The 'concrete' option to jax.checkpoint / jax.remat is deprecated; in its place, you can use its"
            " `static_argnums` option, and if necessary the `jax.ensure_compile_time_eval()` context manager."
        )
    if fun is None:
        return functools.partial(
            checkpoint,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)

    @functools.wraps(fun)
    @api_boundary
    def checkpointed(*args, **kwargs):
        positions = {n % len(args) for n in static} if static else set()
        dynamic = tuple(a for i, a in enumerate(args) if i not in positions)
        call = fun if not positions else _with_static(fun, args, positions)
        if names:
            call = functools.partial(call, **{k: v for k, v in kwargs.items() if k in names})
            kwargs = {k: v for k, v in kwargs.items() if k not in names}
        leaves, in_tree = pytree.tree_flatten((dynamic, kwargs))
        program, consts, out_tree = staging.trace_function(call, in_tree, tuple(aval_of(x) for x in leaves))
        out = remat_p.bind(
            *consts, *leaves, jaxpr=program, prevent_cse=prevent_cse, differentiated=False, policy=policy
        )
        return pytree.tree_unflatten(out_tree, out)

    return checkpointed


remat = checkpoint


def _with_static(fun, args, positions):
    def call(*dynamic, **kwargs):
        rest = iter(dynamic)
        return fun(*(args[i] if i in positions else next(rest) for i in range(len(args))), **kwargs)

    return call


def zero_from_primal(val: Any, symbolic_zeros: bool = False):
    """The zero tangents of a pytree of arrays: arrays, or `SymbolicZero`."""
    make = SymbolicZero if symbolic_zeros else zeros_of
    return pytree.tree_map(lambda x: make(aval_of(x).to_tangent_aval()), val)


__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "checkpoint", "closure_convert", "custom_gradient", "custom_jvp",
    "custom_vjp", "custom_vjp_primal_tree_values", "remat", "zero_from_primal",
]  # fmt: skip
