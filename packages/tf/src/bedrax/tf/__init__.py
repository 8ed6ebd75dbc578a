"""What both bridges between programs and TensorFlow share: TensorFlow itself, its dtypes, shapes and tensors."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

# TensorFlow has wheels for Pythons up to this one: the marker in this package's pyproject.toml says the same.
NEWEST_PYTHON = (3, 13)


def why_absent() -> str | None:
    """Returns why TensorFlow cannot be imported here, and what to do; None if it is installed."""
    if importlib.util.find_spec("tensorflow") is not None:
        return None
    oldest, newest, here = "3.11", *("{}.{}".format(*version) for version in (NEWEST_PYTHON, sys.version_info))
    wheels = f"it has wheels for Python {oldest} to {newest}"
    if sys.version_info[:2] > NEWEST_PYTHON:
        return f"TensorFlow is not installed: {wheels}, and this is Python {here}; use one of those"
    return f"TensorFlow is not installed: {wheels}; install it by the extra: pip install 'jax[tf]'"


class _OnDemand:
    """The TensorFlow module, imported (once) when a name of it is first asked for: bridges are imported without it."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module("tensorflow"), name)
        self.__dict__[name] = value
        return value


if _why := why_absent():
    raise ModuleNotFoundError(_why, name="tensorflow")

tensorflow: Any = _OnDemand()

__all__ = ["tensorflow"]
