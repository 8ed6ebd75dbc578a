"""`jax.experimental.checkify`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.extend.checkify": (
        "Error", "all_checks", "automatic_checks", "check", "checkify", "div_checks", "float_checks",
        "index_checks", "nan_checks", "user_checks",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.extend.checkify import (
        Error as Error, all_checks as all_checks, automatic_checks as automatic_checks, check as check,
        checkify as checkify, div_checks as div_checks, float_checks as float_checks,
        index_checks as index_checks, nan_checks as nan_checks, user_checks as user_checks,
    )  # fmt: skip
