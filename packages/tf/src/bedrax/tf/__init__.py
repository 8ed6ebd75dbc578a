"""What both bridges between programs and TensorFlow share: TensorFlow itself, its dtypes, shapes and tensors."""

from __future__ import annotations

import importlib
from typing import Any


class _OnDemand:
    """The TensorFlow module, imported (once) when a name of it is first asked for: bridges are imported without it."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module("tensorflow"), name)
        self.__dict__[name] = value
        return value


tensorflow: Any = _OnDemand()

__all__ = ["tensorflow"]
