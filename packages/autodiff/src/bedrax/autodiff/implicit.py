"""Solutions of equations, differentiated by the implicit function theorem: `custom_linear_solve`, `custom_root`.

The solvers are not differentiated: at a solution of ``f(x, a) = 0``, ``df/dx dx = -df/da da``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bedrax import pytree
from bedrax.autodiff.custom_rules import custom_jvp
from bedrax.autodiff.derivatives import jvp
from bedrax.autodiff.linear_maps import linearize
from bedrax.autodiff.linearization import transpose_jaxpr
from bedrax.autodiff.tables import Zero, instantiate
from bedrax.core import staging
from bedrax.core.avals import abstractify
from bedrax.core.ir import Jaxpr, call_flat
from bedrax.lax.filling import zeros_like
from bedrax.lax.primitives.elementwise import neg
from bedrax.lax.primitives.solvers import linear_solve_p

__all__ = ["custom_linear_solve", "custom_root"]


def _trace(what: str, fun: Callable, types: list, tree, has_aux: bool = False) -> tuple[Jaxpr, list, Any, int]:
    """A function of one argument, which returns something of the same types (and auxiliary results).

    Returns:
      (program, its closed-over values, structure of the result, number of its leaves that are like the argument's).
    """
    jaxpr, consts, out_tree = staging.trace_function(
        fun, pytree.tree_structure(((pytree.skeleton(tree),), {})), tuple(types)
    )
    main = out_tree
    if has_aux:
        parts = out_tree.children()
        if len(parts) != 2:
            raise TypeError(f"{what} with has_aux=True must return a pair (result, aux), got the structure {out_tree}")
        main = parts[0]
    if main != tree:
        raise TypeError(f"{what} must return the structure of its argument: expected {tree}, got {main}")
    for got, want in zip(jaxpr.out_avals[: len(types)], types, strict=True):
        if (got.shape, got.dtype) != (want.shape, want.dtype):
            raise TypeError(f"{what} must return the types of its argument: expected {want.short()}, got {got.short()}")
    return jaxpr, consts, out_tree, len(types)


def custom_linear_solve(
    matvec: Callable[..., Any],
    b: Any,
    solve: Callable[[Callable[..., Any], Any], Any],
    transpose_solve: Callable[[Callable[..., Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve ``matvec(x) == b`` with a given solver, and derivatives that are linear solves themselves.

    Args:
      matvec: a linear function. Its argument and its result have `b`'s structure, shapes and dtypes.
      b: a pytree of arrays.
      solve: ``solve(matvec, b)`` is x; it need not be differentiable.
      transpose_solve: ``transpose_solve(vecmat, b)`` solves with the transpose of `matvec`; reverse mode needs it.
      symmetric: `matvec` is its own transpose, so `solve` is used for it as well.
      has_aux: the solvers return ``(x, aux)``; ``aux`` is not differentiated.

    Returns:
      The result of ``solve(matvec, b)``.

    Raises:
      TypeError: structures or types of results do not match `b`.

    Examples:

      >>> diagonal = jnp.array([1., 2., 4.])
      >>> matvec = lambda x: diagonal * x
      >>> b = jnp.array([1., 1., 1.])
      >>> lax.custom_linear_solve(matvec, b, solve=lambda matvec, b: b / diagonal, symmetric=True)
      Array([1.  , 0.5 , 0.25], dtype=float32)
    """
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    leaves, tree = pytree.tree_flatten(b)
    types = [abstractify(x).strip_weak_type() for x in leaves]
    forward, forward_consts, *_ = _trace("custom_linear_solve: matvec", matvec, types, tree)
    solver, solver_consts, out_tree, n = _trace(
        "custom_linear_solve: solve", lambda y: solve(matvec, y), types, tree, has_aux
    )
    jaxprs, consts = [forward, None, solver, None], [forward_consts, [], solver_consts, []]
    if transpose_solve is not None:
        if symmetric:
            backward, backward_consts = forward, forward_consts
        else:
            k = len(forward_consts)
            transposed, arriving = transpose_jaxpr(forward, (False,) * k + (True,) * n, (True,) * n)
            backward, backward_consts = (_with_zeros(transposed, arriving, forward.in_avals[:k], types), forward_consts)

        def vecmat(x):
            return pytree.tree_unflatten(tree, call_flat(backward, [*backward_consts, *pytree.tree_leaves(x)]))

        back_solver, back_consts, *_ = _trace(
            "custom_linear_solve: transpose_solve", lambda y: transpose_solve(vecmat, y), types, tree, has_aux
        )
        jaxprs[1], jaxprs[3] = backward, back_solver
        consts[1], consts[3] = backward_consts, back_consts
    out = linear_solve_p.bind(
        *(c for cs in consts for c in cs), *leaves, jaxprs=tuple(jaxprs), const_lengths=tuple(map(len, consts))
    )
    return pytree.tree_unflatten(out_tree, out)


def _with_zeros(program: Jaxpr, arriving: tuple[bool, ...], const_types: list, types: list) -> Jaxpr:
    """The transposed program with every cotangent among its results, including those that are always zero."""
    if all(arriving):
        return program

    def full(*args):
        some = iter(call_flat(program, args))
        cts = args[len(const_types) :]
        return [next(some) if here else zeros_like(ct) for here, ct in zip(arriving, cts, strict=True)]

    return staging.program_of(full, [*const_types, *types])


def custom_root(
    f: Callable[..., Any],
    initial_guess: Any,
    solve: Callable[[Callable[..., Any], Any], Any],
    tangent_solve: Callable[[Callable[..., Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """A root of `f` from a given solver, differentiated with respect to the values that `f` closes over.

    Args:
      f: a function. Its argument and its result have `initial_guess`'s structure, shapes and dtypes.
      initial_guess: a pytree of arrays.
      solve: ``solve(f, initial_guess)`` is the root; it need not be differentiable.
      tangent_solve: ``tangent_solve(g, y)`` is the x with ``g(x) == y`` for a linear function g, e.g.
        ``lambda g, y: y / g(1.0)`` for scalars.
      has_aux: `solve` returns ``(root, aux)``; ``aux`` is not differentiated.

    Returns:
      The result of ``solve(f, initial_guess)``.

    Raises:
      TypeError: structures or types of results do not match `initial_guess`.

    Examples:

      >>> def root_of_two(f, guess):
      ...     return lax.fori_loop(0, 10, lambda i, x: x - f(x) / jax.grad(f)(x), guess)
      ...
      >>> solve_tangent = lambda g, y: y / g(1.)
      >>> lax.custom_root(lambda x: x ** 2 - 2, 1., root_of_two, solve_tangent)
      Array(1.4142135, dtype=float32, weak_type=True)
    """
    leaves, tree = pytree.tree_flatten(initial_guess)
    types = [abstractify(x) for x in leaves]
    residual, residual_consts, *_ = _trace("custom_root: f", f, types, tree)
    solver, solver_consts, out_tree, n = _trace("custom_root: solve", lambda y: solve(f, y), types, tree, has_aux)

    def root(f_consts, other_consts, guess):
        return call_flat(solver, [*other_consts, *guess])

    def tangent(primals, tangents):
        f_consts, other_consts, guess = primals
        out = differentiable(f_consts, other_consts, guess)
        x = out[:n]
        _, change = jvp(lambda *cs: call_flat(residual, [*cs, *x]), tuple(f_consts), tuple(tangents[0]))
        _, push = linearize(lambda *xs: call_flat(residual, [*f_consts, *xs]), *x)

        def g(y):
            return pytree.tree_unflatten(tree, push(*pytree.tree_leaves(y)))

        right = pytree.tree_unflatten(tree, [neg(t) for t in change])
        dx, found = pytree.tree_flatten(tangent_solve(g, right))
        if found != tree:
            raise TypeError(f"custom_root: tangent_solve must return the structure {tree}, got {found}")
        return out, [*dx, *(instantiate(Zero.of(v)) for v in out[n:])]

    differentiable = custom_jvp(root)
    differentiable.defjvp(tangent)
    return pytree.tree_unflatten(out_tree, differentiable(residual_consts, solver_consts, leaves))
