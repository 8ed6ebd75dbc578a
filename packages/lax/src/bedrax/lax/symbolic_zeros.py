"""Tangents that are known to vanish, as the rules of batching and of differentiation pass them on."""

from __future__ import annotations

from typing import Any

from bedrax.core.avals import AbstractValue, ShapedArray, aval_of
from bedrax.lax.filling import zeros_of


class LazilyTyped:
    """Base of objects with an aval that is computed on first access."""

    __slots__ = ("_aval", "_of")

    def __init__(self, aval: AbstractValue | None, of: Any = None) -> None:
        self._aval = aval
        self._of = of

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval.short()})"


class Zero(LazilyTyped):
    """A tangent or cotangent that is known to be zero; `aval` is its (tangent) type.

    Examples:

      >>> from jax.experimental import hijax

      >>> zero = hijax.Zero(jax.typeof(jnp.ones(3)))
      >>> zero, zero.instantiate()
      (Zero(f32[3]), Array([0., 0., 0.], dtype=float32))

      >>> from jax.interpreters import ad

      >>> def f(x):
      ...     return jnp.sin(x), jnp.ones(2)
      ...
      >>> _, (moves, still) = ad.jvp(f, [0.], [1.], instantiate=False)
      >>> moves, still
      (Array(1., dtype=float32, ...), Zero(f32[2]))
      >>> still.instantiate()
      Array([0., 0.], dtype=float32)
    """

    __slots__ = ()

    @staticmethod
    def of(x: Any) -> Zero:
        """The zero tangent of a value."""
        return Zero(None, x)

    from_primal_value = of  # the name that libraries use

    def instantiate(self) -> Any:
        """An array of zeros of this type."""
        return zeros_of(self.aval)

    @property
    def aval(self) -> AbstractValue:
        found = self._aval
        if found is None:
            found = self._aval = aval_of(self._of).to_tangent_aval()
            self._of = None
        return found


class SymbolicZero:
    """A tangent that is known to be zero, as rules with ``symbolic_zeros=True`` see it. `aval` is its type.

    Examples:

      >>> @jax.custom_jvp
      ... def f(x, y):
      ...     return x * y
      ...
      >>> def f_jvp(primals, tangents):
      ...     print([type(t) is jax.custom_derivatives.SymbolicZero for t in tangents])
      ...     (x, y), (t, _) = primals, tangents
      ...     return x * y, t * y
      ...
      >>> _ = f.defjvp(f_jvp, symbolic_zeros=True)
      >>> jax.grad(f)(2., 3.)
      [False, True]
      Array(3., dtype=float32, weak_type=True)
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval: Any = aval

    @property
    def shape(self) -> Any:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval.short()})"


def instantiate(tangent: Any) -> Any:
    """A tangent as a value: `Zero` becomes an array of zeros."""
    return zeros_of(tangent.aval) if type(tangent) is Zero else tangent
