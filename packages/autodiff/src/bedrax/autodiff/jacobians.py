"""Jacobians and Hessians: the columns or the rows of a derivative, one `vmap` over a basis."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from bedrax import lax, pytree
from bedrax.autodiff.arguments import Chosen, check_argnums, check_inputs, check_outputs, is_float0
from bedrax.autodiff.derivatives import jvp
from bedrax.autodiff.linear_maps import vjp
from bedrax.batching import vmap
from bedrax.core.avals import aval_of
from bedrax.core.source import api_boundary
from bedrax.core.typing import P

__all__ = ["hessian", "jacfwd", "jacobian", "jacrev"]


def _basis(leaves) -> list:
    """The standard basis of the space of `leaves`, one batch per leaf."""
    avals = [aval_of(x) for x in leaves]
    for a in avals:
        if a.is_high:
            raise NotImplementedError(
                f"a Jacobian with respect to a value of type {a} is not supported: such values have no standard basis. Let the"
                " function take the arrays that represent the value"
            )
    sizes = [a.size for a in avals]
    total = sum(sizes)
    out, start = [], 0
    for a, n in zip(avals, sizes, strict=True):
        rows = lax.broadcasted_iota(np.dtype(np.int32), (total, n), 0)
        columns = lax.add(lax.broadcasted_iota(np.dtype(np.int32), (total, n), 1), np.int32(start))
        eye = lax.convert_element_type(lax.eq(rows, columns), a.dtype)
        out.append(lax.reshape(eye, (total, *a.shape)))
        start += n
    return out


def _split_batch(x, axis: int, trees_leaves) -> list:
    """Cut the batch axis of `x` into one piece per leaf, shaped like it."""
    avals = [aval_of(leaf) for leaf in trees_leaves]
    out, start = [], 0
    shape = aval_of(x).shape
    for a in avals:
        part = lax.slice_in_dim(x, start, start + a.size, axis=axis)
        out.append(lax.reshape(part, (*shape[:axis], *a.shape, *shape[axis + 1 :])))
        start += a.size
    return out


def jacfwd(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]:
    """The Jacobian by forward mode, one column at a time under `vmap`.

    Args: see `grad`; `fun` may return any pytree of arrays.

    Returns:
      A function that returns, for each result, a pytree like the argument whose leaves have
      the result's axes, then the argument's.

    Examples:

      >>> jax.jacfwd(lambda x: jnp.array([x[0] * x[1], x[0]]))(jnp.array([2., 3.]))
      Array([[3., 2.],
             [1., 0.]], dtype=float32)
    """
    argnums = check_argnums("jacfwd", argnums)

    @functools.wraps(fun, updated=())
    @api_boundary
    def jacobian(*args, **kwargs):
        chosen = Chosen("jacfwd", fun, argnums, args, kwargs)
        check_inputs("jacfwd", chosen, holomorphic=holomorphic, forward=True)

        def push(*tangents):
            out = jvp(chosen.call, tuple(chosen.leaves), tangents, has_aux=has_aux)
            check_outputs("jacfwd", pytree.tree_leaves(out[0]), holomorphic=holomorphic, reverse=False)
            return out

        basis = _basis(chosen.leaves)
        if has_aux:
            _, tangents, aux = vmap(push, out_axes=(None, -1, None))(*basis)
        else:
            _, tangents = vmap(push, out_axes=(None, -1))(*basis)

        def columns(t):
            pieces = _split_batch(t, len(aval_of(t).shape) - 1, chosen.leaves)
            return pytree.tree_unflatten(chosen.tree, pieces)

        jac = pytree.tree_map(columns, tangents)
        return (jac, aux) if has_aux else jac

    return jacobian


def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian by reverse mode: one row for each element of the result, under `vmap`.

    It suits functions with fewer results than arguments; `jacfwd` suits others.

    Args:
      fun: takes arrays, or pytrees of them, and returns a pytree of arrays.
      argnums: the position, or positions, of the arguments to differentiate by.
      has_aux: `fun` returns ``(result, aux)``, and the new function ``(Jacobian, aux)``.
      holomorphic: `fun` is complex and holomorphic.
      allow_int: arguments may be integers; their derivatives have the dtype `float0`.

    Returns:
      A function of the same arguments. It returns, for each leaf of the result, a pytree like the argument, whose leaves
      have the axes of the result, then those of the argument.

    Raises:
      TypeError: an argument or a result has a dtype without derivatives.

    Examples:

      >>> jax.jacrev(lambda x: jnp.array([x[0] * x[1], x[0]]))(jnp.array([2., 3.]))
      Array([[3., 2.],
             [1., 0.]], dtype=float32)

      >>> jax.jacobian(lambda x: jnp.array([x[0] * x[1], x[0]]))(jnp.array([2., 3.]))
      Array([[3., 2.],
             [1., 0.]], dtype=float32)
    """
    argnums = check_argnums("jacrev", argnums)

    @functools.wraps(fun, updated=())
    @api_boundary
    def jacobian(*args, **kwargs):
        chosen = Chosen("jacrev", fun, argnums, args, kwargs)
        check_inputs("jacrev", chosen, holomorphic=holomorphic, allow_int=allow_int)
        out = vjp(chosen.call, *chosen.leaves, has_aux=has_aux)
        result, pullback = out[0], out[1]
        out_leaves, out_tree = pytree.tree_flatten(result)
        check_outputs("jacrev", out_leaves, holomorphic=holomorphic)
        basis = _basis(out_leaves)
        rows = vmap(lambda *cts: pullback(pytree.tree_unflatten(out_tree, cts)))(*basis)
        by_output: list[list[Any]] = [[] for _ in out_leaves]
        for r in rows:
            pieces = [r] * len(out_leaves) if is_float0(r) else _split_batch(r, 0, out_leaves)
            for collected, piece in zip(by_output, pieces, strict=True):
                collected.append(piece)
        jac = pytree.tree_unflatten(out_tree, [pytree.tree_unflatten(chosen.tree, row) for row in by_output])
        return (jac, out[2]) if has_aux else jac

    return jacobian


jacobian: Final = jacrev


def hessian(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]:
    """Return a function that computes the second derivatives of `fun`: forward mode over reverse mode.

    Args:
      fun: takes arrays, or pytrees of them, and returns a pytree of arrays, often one scalar.
      argnums: the position, or positions, of the arguments to differentiate by.
      has_aux: `fun` returns ``(result, aux)``, and the new function ``(Hessian, aux)``.
      holomorphic: `fun` is complex and holomorphic.

    Returns:
      A function of the same arguments. For an argument of shape ``s`` and a result of shape ``r`` it returns an array of
      shape ``r + s + s``; for pytrees, a pytree like the argument in each leaf of a pytree like the argument.

    Raises:
      TypeError: an argument or a result has a dtype without derivatives.

    Examples:

      >>> jax.hessian(lambda x: x[0] ** 2 * x[1])(jnp.array([1., 2.]))
      Array([[4., 2.],
             [2., 0.]], dtype=float32)
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)
