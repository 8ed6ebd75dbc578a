"""The column of this package: operations on references as operations on their values.

A rule is called with a reference of the current trace for each operand that is one. For a primitive that holds
programs, it makes their pure forms (`bedrax.state.discharge.discharged`), binds the primitive to the values of the
references, and writes the results for them back.
"""

from __future__ import annotations

from typing import Final

from bedrax.core.columns import Column

discharge_rules: Final = Column(
    "discharge", "bedrax.state.rules", signature="rule(*refs and arrays, **params) -> results"
)
