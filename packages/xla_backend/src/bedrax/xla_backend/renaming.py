"""Renamed parameters: the old name is accepted as a keyword, with a warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any


def renamed(**parameters: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a function with renamed parameters.

    Args:
      parameters: the present name, by the old name. A call with the old name warns (DeprecationWarning), a call with
        both names raises TypeError.
    """

    def decorator(fun: Callable) -> Callable:
        @functools.wraps(fun)
        def called(*args, **kwargs):
            for old in parameters.keys() & kwargs.keys():
                new = parameters[old]
                if new in kwargs:
                    raise TypeError(f"{fun.__name__}() got {new}= and its old name {old}=: give it once, as {new}=")
                warnings.warn(
                    f"{fun.__name__}({old}=...) is deprecated: the parameter is called {new}", DeprecationWarning, 2
                )
                kwargs[new] = kwargs.pop(old)
            return fun(*args, **kwargs)

        return called

    return decorator
