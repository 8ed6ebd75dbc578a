"""References to mutable arrays: `new_ref`, reading and writing in place, under every transformation.

With this package, operations that hold programs (jit, loops, branches) and transformations accept references.
"""

from bedrax.core import offers
from bedrax.state import discharge as _discharge  # noqa: F401  (for every program with a reference)
from bedrax.state.operations import TransformedRef, addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap
from bedrax.state.types import AbstractRef, Ref

offers.offer("type of references", "bedrax.state.types:AbstractRef")

__all__ = [
    "AbstractRef",
    "Ref",
    "TransformedRef",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]
