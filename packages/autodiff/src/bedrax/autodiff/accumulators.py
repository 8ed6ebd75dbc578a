"""Accumulators of cotangents: a backward rule adds cotangents to them in place of returning cotangents."""

from __future__ import annotations

from typing import Any

from bedrax.autodiff.tables import Zero, add_tangents
from bedrax.core.avals import AbstractValue

__all__ = ["GradAccum", "NullAccum", "ValAccum"]


class GradAccum:
    """Accumulator of the cotangents of one argument of a backward rule.

    Attributes:
      aval: the type of the argument.

    Examples:

      >>> from jax.experimental import hijax

      >>> class Largest(hijax.GradAccum):
      ...     def __init__(self, aval):
      ...         self.aval, self.found = aval, -jnp.inf
      ...     def accum(self, x):
      ...         self.found = jnp.maximum(self.found, x)
      ...     def freeze(self):
      ...         return self.found
      ...
      >>> accum = Largest(jax.typeof(1.))
      >>> for x in (1., 3., 2.):
      ...     accum.accum(x)
      ...
      >>> accum.freeze()
      Array(3., dtype=float32, ...)
    """

    aval: AbstractValue

    def accum(self, x: Any) -> None:
        """Add a cotangent, or `Zero`."""
        raise NotImplementedError(f"{type(self).__name__} does not define the method accum(self, x)")

    def freeze(self) -> Any:
        """The sum: a value, or `Zero` if no cotangent was added."""
        raise NotImplementedError(f"{type(self).__name__} does not define the method freeze(self)")


class ValAccum(GradAccum):
    """A `GradAccum` that holds the sum as a value.

    Args:
      aval: the type of the argument.
      val: the initial sum. Default: `Zero`.

    Examples:

      >>> from jax.experimental import hijax

      >>> accum = hijax.ValAccum(jax.typeof(jnp.ones(2)))
      >>> accum.freeze()
      Zero(f32[2])
      >>> accum.accum(jnp.ones(2))
      >>> accum.accum(jnp.array([1., 5.]))
      >>> accum.freeze()
      Array([2., 6.], dtype=float32)
    """

    def __init__(self, aval: AbstractValue, val: Any = None) -> None:
        self.aval: AbstractValue = aval
        self.val = Zero(aval.to_tangent_aval()) if val is None else val

    def accum(self, x: Any) -> None:
        """Add a cotangent; None and `Zero` add nothing."""
        if x is None or type(x) is Zero:
            return
        self.val = x if type(self.val) is Zero else add_tangents(self.val, x)

    def freeze(self) -> Any:
        """The sum, or `Zero`."""
        return self.val

    def __repr__(self) -> str:
        return f"ValAccum({self.aval.str_short()})"


class NullAccum(GradAccum):
    """A `GradAccum` of an argument that is not differentiated: it drops every cotangent.

    Args:
      aval: the type of the argument.

    Examples:

      >>> from jax.experimental import hijax

      >>> hijax.NullAccum(jax.typeof(jnp.ones(2))).accum(jnp.ones(2)) is None
      True
    """

    def __init__(self, aval: AbstractValue) -> None:
        self.aval: AbstractValue = aval

    def accum(self, x: Any) -> None:
        """Drop a cotangent."""

    def freeze(self) -> Any:
        """Raises TypeError: there is no sum."""
        raise TypeError(f"the argument of type {self.aval} is not differentiated: it has no cotangent to freeze")

    def __repr__(self) -> str:
        return f"NullAccum({self.aval.str_short()})"
