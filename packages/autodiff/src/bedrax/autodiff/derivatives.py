"""Forward mode and gradients: `jvp`, `grad`, `value_and_grad`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from bedrax import pytree
from bedrax.autodiff.arguments import (
    Chosen,
    as_array,
    as_typed,
    check_argnums,
    check_function,
    check_inputs,
    check_no_reduce_axes,
    check_outputs,
    flattened,
    is_float0,
)
from bedrax.autodiff.forward import jvp_flat_with_aux
from bedrax.autodiff.linearization import linearize_checked
from bedrax.autodiff.tables import Zero
from bedrax.core import dtypes, source
from bedrax.core.avals import aval_of
from bedrax.core.codes import coded
from bedrax.core.names import JVP
from bedrax.core.source import api_boundary
from bedrax.core.typing import P, R, S

__all__ = ["grad", "jvp", "value_and_grad"]


@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]: ...
@overload
def grad(
    fun: Callable[P, tuple[Any, R]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[Any, R]]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]: ...
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Any:
    """The gradient of a scalar-valued function.

    Args:
      fun: returns a scalar (shape ``()``) of a float dtype.
      argnums: which positional arguments to differentiate.
      has_aux: `fun` returns ``(scalar, aux)``; aux is passed through.
      holomorphic: `fun` is a holomorphic function of complex arguments.
      allow_int: allow integer arguments; their gradients have dtype `float0`.
      reduce_axes: only ``()``. Sum over named axes in `fun`.

    Returns:
      A function like `fun` that returns the gradient, a pytree like the argument (a tuple of
      them if `argnums` is a sequence); with `has_aux`, ``(gradient, aux)``.

    Examples:

      >>> jax.grad(lambda x: x ** 2)(3.)
      Array(6., dtype=float32, weak_type=True)
      >>> jax.grad(lambda p: p["a"] * p["b"])({"a": 2., "b": 5.})
      {'a': Array(5., dtype=float32, weak_type=True), 'b': Array(2., dtype=float32, weak_type=True)}
      >>> jax.grad(lambda x, y: x * y, argnums=(0, 1))(2., 5.)
      (Array(5., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    value_and_gradient = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @functools.wraps(fun, updated=())
    @api_boundary
    def gradient(*args, **kwargs):
        value, g = value_and_gradient(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return gradient


@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[R, Any]]: ...
@overload
def value_and_grad(
    fun: Callable[P, tuple[R, S]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[tuple[R, S], Any]]: ...
@overload
def value_and_grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[Any, Any]]: ...
def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Any:
    """Like `grad`, but the function returns ``(value, gradient)``; arguments as for `grad`.

    With `has_aux` the value is ``(scalar, aux)``.

    Examples:

      >>> def loss(x):
      ...     return x ** 2, {"twice": 2 * x}
      ...
      >>> (value, aux), derivative = jax.value_and_grad(loss, has_aux=True)(jnp.array(3.))
      >>> value, derivative
      (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
      >>> aux
      {'twice': Array(6., dtype=float32, weak_type=True)}
    """
    check_function(fun)
    check_no_reduce_axes("grad", reduce_axes)
    argnums = check_argnums("grad", argnums)

    @functools.wraps(fun, updated=())
    @api_boundary
    def value_and_gradient(*args, **kwargs):
        chosen = Chosen("grad", fun, argnums, args, kwargs)
        check_inputs("grad", chosen, holomorphic=holomorphic, allow_int=allow_int)
        active = chosen.active()
        recorded = linearize_checked(flattened(chosen.call, "grad", has_aux), chosen.leaves, active)
        out_tree, aux_tree, n = recorded.aux
        outs = recorded.outs[:n]
        if n != 1 or not pytree.treedef_is_leaf(out_tree):
            result = pytree.tree_unflatten(out_tree, outs)
            remedy = "return a value" if result is None else "pass has_aux=True if the rest is not differentiated"
            raise TypeError(
                coded(
                    "BX-GRAD-SCALAR",
                    f"grad is for functions that return one scalar, got the result {result}; {remedy}",
                    [f"The function is {source.describe_function(fun)}."],
                )
            )
        aval = aval_of(outs[0])
        if aval.shape:
            raise TypeError(
                coded(
                    "BX-GRAD-SCALAR",
                    f"grad is for functions that return one scalar, got a result of shape {aval.shape}; sum it, or use jacrev",
                    [f"The function is {source.describe_function(fun)}."],
                )
            )
        check_outputs("grad", outs, holomorphic=holomorphic)
        found = iter((recorded.first(1) if has_aux else recorded).backward([_one(aval)], once=True))
        gradients = [
            as_array(next(found) if a else Zero.of(x), kind.to_tangent_aval())
            for a, x, kind in zip(active, chosen.leaves, chosen.types, strict=True)
        ]
        gradient = pytree.tree_unflatten(chosen.tree, gradients)
        value = (outs[0], pytree.tree_unflatten(aux_tree, recorded.outs[1:])) if has_aux else outs[0]
        return value, gradient

    return value_and_gradient


def _one(aval) -> Any:
    """The cotangent of a scalar result: a scalar literal of its type."""
    if aval.weak_type:
        for kind in (float, complex):
            if aval.dtype == dtypes.python_scalar_dtype(kind):
                return kind(1)
    return aval.dtype.type(1)


@overload
def jvp(
    fun: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[False] = False
) -> tuple[R, Any]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, S]], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: Literal[True]
) -> tuple[R, Any, S]: ...
@overload
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]: ...
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Push tangents forward through a function.

    Args:
      fun: takes and returns pytrees of arrays.
      primals: the point; a tuple or list, one entry per argument.
      tangents: like `primals`; integer primals have tangents of dtype `float0`.
      has_aux: `fun` returns ``(result, aux)``.

    Returns:
      ``(result, tangent of the result)``, and aux.

    Raises:
      TypeError: `tangents` has another structure than `primals`, or a tangent another dtype than its primal.
      ValueError: a tangent has another shape than its primal.

    Examples:

      >>> value, derivative = jax.jvp(jnp.sin, (0.,), (2.,))
      >>> value, derivative
      (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_function(fun)
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise TypeError(
            coded(
                "BX-TANGENT",
                f"jvp: primals and tangents are tuples, got {type(primals).__name__}, {type(tangents).__name__}",
            )
        )
    leaves, tree = pytree.tree_flatten(tuple(primals))
    tangent_leaves, tangent_tree = pytree.tree_flatten(tuple(tangents))
    if tree != tangent_tree:
        raise TypeError(coded("BX-TANGENT", f"jvp: tangents are structured like primals, {tree}, got {tangent_tree}"))
    pushed = [_checked_tangent(i, p, t, primals) for i, (p, t) in enumerate(zip(leaves, tangent_leaves, strict=True))]
    flat = flattened(lambda *values: fun(*pytree.tree_unflatten(tree, values)), "jvp", has_aux)
    outs, out_tangents, (out_tree, aux_tree, n) = jvp_flat_with_aux(flat, leaves, pushed, JVP)
    result = pytree.tree_unflatten(out_tree, outs[:n])
    typed = [
        (as_typed if dtypes.is_python_scalar(x) else as_array)(t, aval_of(x).to_tangent_aval())
        for x, t in zip(outs[:n], out_tangents)
    ]
    tangent = pytree.tree_unflatten(out_tree, typed)
    return (result, tangent, pytree.tree_unflatten(aux_tree, outs[n:])) if has_aux else (result, tangent)


def _place(i, primals):
    """The place of leaf `i` of the primals, for messages."""
    path, _ = pytree.tree_flatten_with_path(primals)[0][i]
    return f", at primals{pytree.keystr(path)}; make them alike"


def _checked_tangent(i, p, t, primals):
    """The tangent of leaf `i` of the primals, as a value of the tangent type; `Zero` for integers."""
    aval = aval_of(p)
    wanted = aval.to_tangent_aval()
    no_tangent = wanted.is_array and wanted.dtype == dtypes.float0
    if type(t) is Zero and not no_tangent:
        return t
    got = wanted if no_tangent and is_float0(t) else aval_of(t)
    if wanted.represented or got.represented:
        if got != wanted:
            raise TypeError(
                coded(
                    "BX-TANGENT",
                    f"jvp: a tangent for a primal of type {aval} is of type {wanted}, got {got}{_place(i, primals)}",
                )
            )
        return t
    if got.dtype != wanted.dtype:
        raise TypeError(
            coded(
                "BX-TANGENT",
                "jvp: a tangent has the dtype of its primal, or float0 where that is an integer or bool: for a primal of"
                f" {aval.dtype.name} expected {'float0' if no_tangent else wanted.dtype.name}, got"
                f" {got.dtype.name}{_place(i, primals)}",
            )
        )
    if got.shape != wanted.shape:
        raise ValueError(
            coded(
                "BX-TANGENT",
                f"jvp: a primal of shape {aval.shape} was given a tangent of shape {got.shape}{_place(i, primals)}",
            )
        )
    return Zero(wanted) if no_tangent else t
