"""`Partial`: a partially applied function that is a pytree, with its arguments as children."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .registration import register_pytree_node


class _StaticCallable:
    """A `functools.partial` kept whole, so that another partial does not absorb its arguments."""

    __slots__ = ("fun",)

    def __init__(self, fun: Partial | Callable[..., Any]) -> None:
        self.fun = fun

    def __call__(self, *args: int, **kwargs: Any) -> tuple[int, ...]:
        return self.fun(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return type(other) is _StaticCallable and self.fun == other.fun

    def __hash__(self) -> int:
        return hash(self.fun)

    def __repr__(self) -> str:
        return repr(self.fun)


class Partial(functools.partial[Any]):
    """`functools.partial` as a pytree node.

    The positional and keyword arguments are children; the function is metadata, so two
    Partials have the same structure if their functions are equal. A `func` that is itself a
    partial is kept as one function: its arguments are not part of the tree.

    Examples:

      >>> import operator
      >>> halve = jax.tree_util.Partial(operator.mul, 0.5)
      >>> jax.tree.leaves(halve)
      [0.5]
      >>> jax.tree.map(lambda x: x / 2, halve)(4.)
      1.0
    """

    def __new__(cls, func: Any, /, *args: Any, **kw: Any) -> Partial:
        if isinstance(func, functools.partial):
            func = _StaticCallable(func)
        return super().__new__(cls, func, *args, **kw)


register_pytree_node(Partial, lambda p: ((p.args, p.keywords), p.func), lambda func, xs: Partial(func, *xs[0], **xs[1]))
