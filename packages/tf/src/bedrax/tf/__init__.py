"""The common parts of both bridges between programs and TensorFlow: TensorFlow itself, its dtypes, shapes and
tensors."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

# The newest Python with wheels of TensorFlow. The marker in this package's pyproject.toml has the same limit.
NEWEST_PYTHON = (3, 13)
OLDEST_TENSORFLOW = (2, 21)  # the bound of the extras in this package's pyproject.toml


def why_absent() -> str | None:
    """Return why TensorFlow cannot be imported here, and the remedy; None if it is installed."""
    if importlib.util.find_spec("tensorflow") is not None:
        return None
    oldest, newest, here = "3.11", *("{}.{}".format(*version) for version in (NEWEST_PYTHON, sys.version_info))
    wheels = f"it has wheels for Python {oldest} to {newest}"
    if sys.version_info[:2] > NEWEST_PYTHON:
        return f"TensorFlow is not installed: {wheels}, and this is Python {here}; use one of those"
    return (
        f"TensorFlow is not installed: {wheels}; install 'bedrax[tf]', which has"
        " tensorflow-cpu, or 'bedrax[tensorflow]', which has tensorflow, for GPUs, too"
    )


def why_too_old(version: str) -> str | None:
    """Return why a version of TensorFlow cannot be used, and the remedy; None if it can."""
    if tuple(int(part) for part in version.split(".")[:2]) >= OLDEST_TENSORFLOW:
        return None
    oldest = "{}.{}".format(*OLDEST_TENSORFLOW)
    return (
        f"TensorFlow {version} is installed; {oldest} or later is needed: install 'tensorflow-cpu>={oldest}' or"
        f" 'tensorflow>={oldest}'"
    )


class _OnDemand:
    """The TensorFlow module, imported (once) at the first use of a name in it: the bridges load without it."""

    def __getattr__(self, name: str) -> Any:
        module = importlib.import_module("tensorflow")
        if not self.__dict__ and (why := why_too_old(module.__version__)):
            raise ImportError(why, name="tensorflow")
        value = getattr(module, name)
        self.__dict__[name] = value
        return value


if _why := why_absent():
    raise ModuleNotFoundError(_why, name="tensorflow")

tensorflow: Any = _OnDemand()

__all__ = ["tensorflow"]
