"""The vocabulary of array programs: every lax function and primitive, found in its family's file on first use.

The import installs the arithmetic of arrays.
"""

from bedrax.core import array as _array
from bedrax.core.lazy import attach_stub

_BINARY = "add sub mul truediv floordiv mod pow divmod and or xor lshift rshift".split()
_OPERATORS = ("eq ne lt le gt ge neg pos abs invert iter".split(), _BINARY, ["r" + name for name in _BINARY])
_array.install_on_demand("bedrax.lax.operators", [f"__{name}__" for names in _OPERATORS for name in names])

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
