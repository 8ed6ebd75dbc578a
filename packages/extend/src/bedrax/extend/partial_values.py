"""Values that may be unknown, for `bedrax.extend.partial_eval`.

Needed by Flax: its annotations use the class at import time, so this module loads nothing else.
"""

from __future__ import annotations

from typing import Any

from bedrax.core.avals import AbstractValue, aval_of


class PartialVal(tuple):
    """A value that may be unknown: a pair (type or None, value or None) in which exactly one is None.

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> three = pe.PartialVal.known(jnp.array([3.]))
      >>> three.is_known(), three.get_known(), three.get_aval()
      (True, Array([3.], dtype=float32), ShapedArray(float32[1]))
      >>> pe.PartialVal.unknown(three.get_aval()).is_known()
      False
    """

    @staticmethod
    def unknown(aval: AbstractValue) -> PartialVal:
        """An unknown value with a known type."""
        return PartialVal((aval, None))

    @staticmethod
    def known(const: Any) -> PartialVal:
        """A known value."""
        return PartialVal((None, const))

    def is_known(self) -> bool:
        aval, _ = self
        return aval is None

    def get_known(self) -> Any:
        """The value, or None."""
        aval, value = self
        return None if aval is not None else value

    def get_aval(self) -> AbstractValue:
        """The type."""
        aval, value = self
        return aval_of(value) if aval is None else aval
