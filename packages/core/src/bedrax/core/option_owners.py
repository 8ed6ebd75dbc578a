"""Modules that declare options (`bedrax.core.config`), named before anybody has a use for them."""

from __future__ import annotations

waiting: list[str] = []


def offer(*modules: str) -> None:
    """Name modules that declare flags: they are imported when somebody asks for a flag that is not declared yet."""
    waiting.extend(modules)
