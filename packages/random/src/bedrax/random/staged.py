"""Functions compiled for whichever executor is active when they are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bedrax.core import executors, jitting


class PerExecutor:
    """A jitted function, made on its first call and again when another executor becomes active.

    Args:
      fun: the function.
      static: names of its static parameters.
    """

    __slots__ = ("__name__", "compiled", "executor", "fun", "static")

    def __init__(self, fun: Callable, static: Sequence[str] = ()):
        self.fun = fun
        self.static = tuple(static)
        self.executor = None
        self.compiled: Callable = fun
        self.__name__ = fun.__name__

    def __call__(self, *args, **kwargs):
        if self.executor is not executors.get():
            self.compiled = jitting.jit(self.fun, static_argnames=self.static)
            self.executor = executors.get()
        return self.compiled(*args, **kwargs)
