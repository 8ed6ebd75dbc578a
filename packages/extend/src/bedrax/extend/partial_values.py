"""Values that may be unknown, for `bedrax.extend.partial_eval`.

Needed by Flax: its annotations use the class at import time, so this module loads nothing else.
"""

from __future__ import annotations

from typing import Any

from bedrax.core.avals import AbstractValue, aval_of


class PartialVal(tuple):
    """A value that may be unknown: a pair (type or None, value or None) in which exactly one is None."""

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
