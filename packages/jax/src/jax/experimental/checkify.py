"""`jax.experimental.checkify`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.extend.checkify": (
        "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check",
        "check_error", "checkify", "debug_check", "div_checks", "float_checks", "index_checks",
        "nan_checks", "user_checks",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.extend.checkify import (
        Error as Error, ErrorCategory as ErrorCategory, JaxRuntimeError as JaxRuntimeError,
        all_checks as all_checks, automatic_checks as automatic_checks, check as check,
        check_error as check_error, checkify as checkify, debug_check as debug_check,
        div_checks as div_checks, float_checks as float_checks, index_checks as index_checks,
        nan_checks as nan_checks, user_checks as user_checks,
    )  # fmt: skip
