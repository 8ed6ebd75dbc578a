"""Arguments that choose among a few values, and options without a meaning here."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


def one_of(function: str, argument: str, value: Any, options: Collection[Any]) -> None:
    """Raise ValueError with a list of the options if `value` is not one of them."""
    if value not in options:
        listed = ", ".join(map(repr, options))
        raise ValueError(f"{function}: {argument} is one of {listed}, got {value!r}")


def refuse_options(function: str, **options: Any) -> None:
    """Raise NotImplementedError if an option that libraries pass by name, and that has no meaning here, is set."""
    given = sorted(name for name, value in options.items() if value not in (None, False))
    if given:
        shown = ", ".join(f"{name}={options[name]!r}" for name in given)
        raise NotImplementedError(f"{function}: the options {shown} are not supported here; leave them out")
