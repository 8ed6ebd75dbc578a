"""Run NumPy without its floating-point warnings: infinities and NaNs are ordinary results."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any, Final

import numpy as np


class Quiet(threading.local):
    """NumPy keeps its error state in a context variable, so a context of our own can hold the quiet one."""

    run: Callable[
        ..., Any
    ]  # ``(function, *args)``: without warnings. RuntimeError: NumPy was interrupted in this thread

    def __init__(self) -> None:
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        self.run = context.run

    def __reduce__(self) -> str:
        return "quiet"


quiet: Final = Quiet()


def quietly(function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function(*args)``, a NumPy computation, without warnings. It costs less than `numpy.errstate`."""
    try:
        return quiet.run(function, *args)
    except RuntimeError:  # the context is entered already: the caller interrupted NumPy
        with np.errstate(all="ignore"):
            return function(*args)
