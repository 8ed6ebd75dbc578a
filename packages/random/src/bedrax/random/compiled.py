"""Samplers as compiled functions of a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bedrax.core import executors, jitting
from bedrax.random.key_array import KeyArray
from bedrax.random.primitives import random_wrap_p


class KeyFunction:
    """A function of one typed key, compiled for the executor in charge.

    Eager calls are compiled with the key's base as the argument, which every executor dispatches fast; under a
    transformation the key itself is the argument.

    Args:
      fun: ``(key, *args) -> array``. All arguments are positional.
      static: positions of the arguments that are compile-time constants.
    """

    __slots__ = ("executor", "fun", "on_base", "on_key", "static")

    def __init__(self, fun: Callable, static: Sequence[int] = ()):
        self.fun = fun
        self.static = tuple(static)
        self.executor = None
        self.on_base: Callable = fun
        self.on_key: Callable = fun

    def __call__(self, key, *args):
        if self.executor is not executors.get():
            self._compile()
        if type(key) is KeyArray:
            return self.on_base(key.base, key.aval.dtype.implementation, *args)
        return self.on_key(key, *args)

    def _compile(self) -> None:
        fun = self.fun

        def on_base(base, implementation, *args):
            return fun(random_wrap_p.bind(base, impl=implementation), *args)

        on_base.__name__ = fun.__name__
        shifted = (1, *(n + 1 for n in self.static))
        self.on_base = jitting.jit(on_base, static_argnums=shifted)
        self.on_key = jitting.jit(fun, static_argnums=self.static)
        self.executor = executors.get()


def key_function(*static: int) -> Callable[[Callable], KeyFunction]:
    """Decorator form of `KeyFunction`."""
    return lambda fun: KeyFunction(fun, static)
