"""The NumPy column: `numpy_rules`, what each primitive means.

A rule takes and returns arrays of exactly the dtypes that the shape rule says. A primitive without
one is evaluated by its decomposition (`bedrax.lax.tables.decompositions`).
"""

from __future__ import annotations

from collections.abc import Callable

from bedrax.core.columns import Column
from bedrax.lax.tables import decompositions


def _composed(prim) -> Callable | None:
    decomposition = decompositions.find(prim)
    if decomposition is None:
        return None
    from bedrax.numpy_backend.composed import by_program  # evaluates, and so needs this table

    return by_program(prim, decomposition)


numpy_rules = Column(
    "NumPy evaluation",
    "bedrax.numpy_backend.rules",
    signature="rule(*ndarrays, **params) -> ndarray, or list of them",
    otherwise=_composed,
)
