"""The NumPy columns: `numpy_rules` evaluates each primitive, `source_rules` writes it as an expression, `exact_rules`
states whether other backends give the same bits.

A NumPy rule takes and returns arrays of exactly the dtypes of the shape rule. A primitive without
one is evaluated by its decomposition (`bedrax.lax.tables.decompositions`; see `composed`).

A source rule is for primitives that are one expression of NumPy in a well typed program. The expression
omits the checks and choices of the NumPy rule.
"""

from __future__ import annotations

import enum
from typing import Final

from bedrax.core import offers
from bedrax.core.columns import Column

numpy_rules: Final = Column(
    "NumPy evaluation",
    "bedrax.numpy_backend.rules",
    signature="rule(*ndarrays, **params) -> ndarray, or list of them",
    purpose="evaluation with NumPy",
)
# Loaded when a primitive has no rule. The module evaluates programs, and so needs this column.
numpy_rules.otherwise = lambda prim: offers.offered("NumPy rule of what is composed")(prim)

source_rules: Final = Column(
    "NumPy source",
    "bedrax.numpy_backend.rules",
    signature="rule(writer, equation, *names of operands) -> Python expression, or None: call the NumPy rule",
)


class Exactness(enum.IntEnum):
    """The operands for which the NumPy rule of an operation gives the bits that the operation has by definition.

    Compilers may flush subnormal numbers to zero, and do not preserve the bits of a NaN. They contract and reorder
    operations that round.

    Attributes:
      BITS: for all operands.
      NORMAL: if operands and results have neither NaN nor subnormal elements.
      ROUNDED: as `NORMAL`, and the result is rounded. So a program of two such operations can have another result, and one
        with a constant, too.
      ALONE: as `ROUNDED`, and the operands must be arguments of the program.
    """

    BITS = 0
    NORMAL = 1
    ROUNDED = 2
    ALONE = 3


exact_rules: Final = Column(
    "exactness of NumPy",
    "bedrax.numpy_backend.rules",
    signature="rule(types of operands, **params) -> Exactness, or None: the bits can differ",
)
