"""Taylor mode as transformations of a `WrappedFun` (`linear_util`): the public parts of `jet`.

Needed by libraries that compose `jet` with their own transformations. `jet` itself is in `bedrax.autodiff.taylor`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bedrax import pytree
from bedrax.autodiff.taylor import jet
from bedrax.extend.linear_util import WrappedFun, transformation2, transformation_with_aux2


def _subtrace(inner: Callable, tag: Any, order: int, primals: Any, series: Any) -> tuple:
    outs, terms = jet(lambda *xs: list(inner(*xs)), primals, series, factorial_scaled=False)
    return tuple(outs), terms


def _start(inner: Callable, order: int, primals: Any, series: Any) -> tuple:
    if any(len(terms) != order for terms in series):
        raise ValueError(f"jet_fun of order {order} needs as many terms, got {[len(terms) for terms in series]}")
    return inner(None, order, list(primals), list(series))


def _flat(inner: Callable, store: Any, in_tree: Any, *leaves: Any) -> list:
    primals, series = pytree.tree_unflatten(in_tree, leaves)
    out, out_tree = pytree.tree_flatten(inner(primals, series))
    store.store(out_tree)
    return out


def jet_subtrace(fun: WrappedFun) -> WrappedFun:
    """A function of flat values that returns a list, on paths: ``(tag, order, primals, series) -> (results, series)``.

    `tag` has no effect: the values determine the trace of an operation. Series are the coefficients of the paths.

    Examples:

      >>> from jax.experimental import jet
      >>> from jax.extend.linear_util import wrap_init
      >>> fun = jet.jet_subtrace(wrap_init(lambda x, y: [x * y]))
      >>> (value,), (terms,) = fun.call_wrapped(None, 2, [2., 3.], [[1., 0.], [5., 0.]])
      >>> print(value, *terms)
      6.0 13.0 5.0
    """
    return transformation2(_subtrace, fun)


def jet_fun(fun: WrappedFun, order: int) -> WrappedFun:
    """Return the result of `jet_subtrace` as a function ``(primals, series) -> (results, series)``.

    Args:
      fun: the result of `jet_subtrace`.
      order: the number of terms of each series.

    Returns:
      A `WrappedFun`. Each series is a list of `order` coefficients of a path.

    Examples:

      >>> from jax.experimental import jet
      >>> from jax.extend.linear_util import wrap_init
      >>> fun = jet.jet_fun(jet.jet_subtrace(wrap_init(lambda x: [jnp.exp(x)])), 3)
      >>> (value,), (terms,) = fun.call_wrapped([0.], [[1., 0., 0.]])
      >>> print(value, *terms)
      1.0 1.0 0.5 0.16666667
    """
    return transformation2(_start, fun, order)


def traceable(fun: WrappedFun, in_tree: Any) -> tuple[WrappedFun, Callable[[], Any]]:
    """Return a function ``(primals, series) -> pytree`` as a function of leaves.

    Args:
      fun: a `WrappedFun` of `primals` and `series`.
      in_tree: the treedef of ``(primals, series)``.

    Returns:
      (a `WrappedFun` from the leaves of the arguments to the list of the leaves of the result, a function without
      arguments that returns the treedef of the result after a call).

    Examples:

      >>> from jax.experimental import jet
      >>> from jax.extend.linear_util import wrap_init
      >>> leaves, tree = jax.tree.flatten(([2.], [[1., 0.]]))
      >>> fun, out_tree = jet.traceable(wrap_init(lambda primals, series: {"at": primals, "along": series}), tree)
      >>> flat = fun.call_wrapped(*leaves)
      >>> flat, jax.tree.unflatten(out_tree(), flat)
      ([1.0, 0.0, 2.0], {'along': [[1.0, 0.0]], 'at': [2.0]})
    """
    return transformation_with_aux2(_flat, fun, in_tree)


__all__ = ["jet_fun", "jet_subtrace", "traceable"]
