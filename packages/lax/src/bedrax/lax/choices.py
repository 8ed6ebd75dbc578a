"""Arguments that choose among a few values."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


def one_of(function: str, argument: str, value: Any, options: Collection[Any]) -> None:
    """Raise ValueError with a list of the options if `value` is not one of them."""
    if value not in options:
        listed = ", ".join(map(repr, options))
        raise ValueError(f"{function}: {argument} is one of {listed}, got {value!r}")
