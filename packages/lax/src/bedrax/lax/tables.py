"""The column of decompositions: primitives as functions of other lax operations.

A rule is a function of arrays and params, written with lax functions. The columns that evaluate
(NumPy, StableHLO, TF) use it for a primitive without a rule in the column. Arrays of an extended
dtype are passed, and returned, as their bases (see `bedrax.lax.element_types`).
"""

from __future__ import annotations

from typing import Final

from bedrax.core.columns import Column

decompositions: Final = Column(
    "decomposition", "bedrax.lax.decompositions", signature="rule(*arrays, **params) -> array, or list of them"
)
