"""The column of this package: how an operation on references is carried out on the values that they hold.

A rule is called with a reference of the current trace for each operand that is one. Of a primitive that holds
programs it makes their pure forms (`bedrax.state.discharge.discharged`), binds the primitive on the values of the
references, and writes back what the programs return for them.
"""

from __future__ import annotations

from typing import Final

from bedrax.core.columns import Column

discharge_rules: Final = Column(
    "discharge", "bedrax.state.rules", signature="rule(*refs and arrays, **params) -> results"
)
