"""The common parts of both bridges between programs and TensorFlow: TensorFlow itself, its dtypes, shapes and
tensors."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

# The newest Python with wheels of TensorFlow. The marker in this package's pyproject.toml has the same limit.
NEWEST_PYTHON = (3, 13)


def why_absent() -> str | None:
    """Return why TensorFlow cannot be imported here, and the remedy; None if it is installed."""
    if importlib.util.find_spec("tensorflow") is not None:
        return None
    oldest, newest, here = "3.11", *("{}.{}".format(*version) for version in (NEWEST_PYTHON, sys.version_info))
    wheels = f"it has wheels for Python {oldest} to {newest}"
    if sys.version_info[:2] > NEWEST_PYTHON:
        return f"TensorFlow is not installed: {wheels}, and this is Python {here}; use one of those"
    return f"TensorFlow is not installed: {wheels}; install it by the extra: pip install 'jax[tf]'"


class _OnDemand:
    """The TensorFlow module, imported (once) at the first use of a name in it: the bridges load without it."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module("tensorflow"), name)
        self.__dict__[name] = value
        return value


if _why := why_absent():
    raise ModuleNotFoundError(_why, name="tensorflow")

tensorflow: Any = _OnDemand()

__all__ = ["tensorflow"]
