"""Extended dtypes by the names that they print as, which is how exported programs hold them."""

from __future__ import annotations

import importlib
from typing import Any

_readers: dict[
    str, tuple[str, str]
] = {}  # how names begin -> module and name of the function that reads them


def offer(prefix: str, module: str, function: str) -> None:
    """Names that begin with `prefix` are read by a function of `module`, which is imported when one is met."""
    _readers[prefix] = module, function


def dtype_of_name(name: str) -> Any:
    """The `ExtendedDType` that prints as `name`; None if no owner has offered to read names that begin so."""
    for prefix, (module, function) in _readers.items():
        if name.startswith(prefix):
            return getattr(importlib.import_module(module), function)(name)
    return None
