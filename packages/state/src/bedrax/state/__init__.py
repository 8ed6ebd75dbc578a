"""References to mutable arrays: `new_ref`, reading and writing in place, under every transformation.

Importing this package lets operations that hold programs (jit, loops, branches) and transformations take references.
"""

from bedrax.state import discharge as _discharge  # noqa: F401  (whoever has a reference can use it everywhere)
from bedrax.state.operations import TransformedRef, addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap
from bedrax.state.types import AbstractRef, Ref

__all__ = [
    "AbstractRef", "Ref", "TransformedRef", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set",
    "swap",
]  # fmt: skip
