"""Derivatives with respect to sparse arrays: with respect to their stored elements, as arrays with the same indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bedrax import autodiff, pytree
from bedrax.core.signatures import is_position, normalized
from bedrax.sparse.bcoo import BCOO
from bedrax.sparse.transform import is_sparse

__all__ = ["flatten_fun_for_sparse_ad", "grad", "is_sparse", "jacfwd", "jacobian", "jacrev", "value_and_grad"]


def flatten_fun_for_sparse_ad(
    fun: Callable[..., Any], argnums: int | Sequence[int], args: Sequence[Any]
) -> tuple[Any, ...]:
    """Return a function of sparse and dense arrays as a function of their leaves.

    Args:
      fun: a function of pytrees of sparse and dense arrays.
      argnums: the position or positions of the arguments that are differentiated.
      args: the arguments.

    Raises:
      ValueError: a position in `argnums` is out of range or occurs twice.

    Returns:
      (function of leaves, positions of the differentiated leaves, leaves, function from a list of values for these
      leaves to the derivative in the form of `argnums`).

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import ad

      >>> mat = sparse.BCOO.fromdense(jnp.diag(jnp.array([2., 3.])))
      >>> f, positions, leaves, back = ad.flatten_fun_for_sparse_ad(lambda m, v: (m @ v).sum(), 0, (mat, jnp.ones(2)))
      >>> positions, [x.shape for x in leaves]  # the stored elements are differentiated, not their places
      ((0,), [(2,), (2, 2), (2,)])
      >>> f(*leaves)
      Array(5., dtype=float32)
    """
    single = is_position(argnums)
    chosen = normalized(argnums, len(args), "sparse: argnums", distinct=True)
    leaves, tree = pytree.tree_flatten(tuple(args))
    places = pytree.tree_unflatten(tree, list(range(len(leaves))))
    first = lambda x: x.data if is_sparse(x) else x  # the data are the first array of every format
    positions = [first(x) for n in chosen for x in pytree.tree_leaves(places[n], is_leaf=is_sparse)]

    def fun_of_leaves(*leaves):
        return fun(*pytree.tree_unflatten(tree, leaves))

    def rebuilt(values: Sequence[Any]) -> Any:
        rest = iter(values)
        new = lambda x: _with_derivative(x, next(rest)) if is_sparse(x) else next(rest)
        out = tuple(pytree.tree_map(new, args[n], is_leaf=is_sparse) for n in chosen)
        return out[0] if single else out

    return fun_of_leaves, tuple(positions), leaves, rebuilt


def _with_derivative(x: Any, data: Any) -> Any:
    """A sparse array like `x` with other data; additional leading dimensions of the data are batch dimensions."""
    more = data.ndim - x.data.ndim
    leaves, tree = pytree.tree_flatten(x)
    if not more:
        return pytree.tree_unflatten(tree, [data, *leaves[1:]])
    if not isinstance(x, BCOO):
        raise NotImplementedError(f"the Jacobian with respect to {x}: use a BCOO array")
    indices = x.indices.reshape((1,) * more + x.indices.shape)
    return BCOO(
        (data, indices),
        shape=data.shape[:more] + x.shape,
        indices_sorted=x.indices_sorted,
        unique_indices=x.unique_indices,
    )


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """`jax.value_and_grad` with sparse arguments: their gradients have the same indices; arguments as in `jax.grad`.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([0., 2., 3.]))
      >>> value, gradient = sparse.value_and_grad(lambda m: m @ jnp.array([1., 10., 100.]))(m)
      >>> value, gradient.data
      (Array(320., dtype=float32), Array([ 10., 100.], dtype=float32))
    """

    def run(*args, **others):
        flat, positions, leaves, rebuilt = flatten_fun_for_sparse_ad(lambda *xs: fun(*xs, **others), argnums, args)
        value, grads = autodiff.value_and_grad(flat, argnums=positions, has_aux=has_aux, **kwargs)(*leaves)
        return value, rebuilt(grads)

    return run


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """`jax.grad` with sparse arguments: their gradients have the same indices; arguments as in `jax.grad`.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([0., 2., 3.]))
      >>> sparse.grad(lambda m: (m @ jnp.array([1., 10., 100.])) ** 2)(m).data
      Array([ 6400., 64000.], dtype=float32)
    """
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    def run(*args, **others):
        value, grads = both(*args, **others)
        return (grads, value[1]) if has_aux else grads

    return run


def _jacobian(which: Callable, fun: Callable, argnums, has_aux: bool, kwargs: dict) -> Callable:
    def run(*args, **others):
        trees = []

        def of_list(*xs):
            out = fun(*xs, **others)
            out, aux = out if has_aux else (out, None)
            out, tree = pytree.tree_flatten(out)
            trees.append(tree)
            return out, aux

        flat, positions, leaves, rebuilt = flatten_fun_for_sparse_ad(of_list, argnums, args)
        rows, aux = which(flat, argnums=positions, has_aux=True, **kwargs)(*leaves)
        out = pytree.tree_unflatten(trees[-1], [rebuilt(row) for row in rows])
        return (out, aux) if has_aux else out

    return run


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """`jax.jacfwd` with sparse arguments: the dimensions of results are batch dimensions of the Jacobian; arguments as in
    `jax.jacfwd`.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([0., 2., 3.]))
      >>> sparse.jacfwd(lambda m: m @ jnp.array([1., 10., 100.]))(m).todense()
      Array([  0.,  10., 100.], dtype=float32)
    """
    return _jacobian(autodiff.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """`jax.jacrev` with sparse arguments: the dimensions of results are batch dimensions of the Jacobian; arguments as in
    `jax.jacrev`.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([0., 2., 3.]))
      >>> sparse.jacrev(lambda m: m @ jnp.array([1., 10., 100.]))(m).todense()
      Array([  0.,  10., 100.], dtype=float32)
    """
    return _jacobian(autodiff.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
