"""Eager evaluation while a function is traced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from bedrax.core.tracing import Primitive, Trace, Tracer, current, entered, eval_trace, set_trace


class _EagerOnConcrete(Trace):
    """Evaluates operations on concrete values eagerly; passes those on tracers to the parent trace."""

    __slots__ = ()
    sees_constants = False

    def process(self, prim: Primitive, args: Any, params: dict[str, Any]) -> Any:
        """Evaluate, or pass to the parent trace."""
        if not any(isinstance(x, Tracer) for x in args):
            return eval_trace.process(prim, args, params)
        with set_trace(self.parent):
            return self.parent.process(prim, args, params)

    def call(self, prim: Primitive, rule: Any, args: Any) -> Any:
        """Run a function of concrete values; pass other ones to the parent trace."""
        if not any(isinstance(x, Tracer) for x in args):
            return rule.primal(*args)
        with set_trace(self.parent):
            return self.parent.call(prim, rule, args)


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Evaluate operations on concrete values eagerly, even while a function is traced.

    Operations on traced values are traced as usual.

    Examples:

      >>> @jax.jit
      ... def f(x):
      ...     with jax.ensure_compile_time_eval():
      ...         steps = int(jnp.log2(8))
      ...     return x ** steps
      ...
      >>> f(2.)
      Array(8., dtype=float32, weak_type=True)
    """
    if current.trace is eval_trace:
        yield
        return
    with entered(_EagerOnConcrete(current.trace)):
        yield


@contextlib.contextmanager
def eval_context() -> Iterator[None]:
    """Evaluate all operations eagerly, even while a function is traced; their operands must be concrete.

    Examples:

      >>> @jax.jit
      ... def f(x):
      ...     with jax.core.eval_context():
      ...         size = int(jnp.array([2, 3]).prod())  # computed now, not recorded
      ...     return jnp.full(size, x)
      ...
      >>> f(1.)
      Array([1., 1., 1., 1., 1., 1.], dtype=float32, weak_type=True)
    """
    with set_trace(eval_trace):
        yield
