"""Run-time checks inside compiled functions: the kinds of errors. Checking itself is not supported yet."""

from __future__ import annotations

from collections.abc import Callable


class JaxException(Exception):
    """Base class of the errors that checks raise."""


class FailedCheckError(JaxException):
    """A user's check failed."""


class NaNError(JaxException):
    """An operation made a NaN."""


class DivisionByZeroError(JaxException):
    """A division by zero."""


class OOBError(JaxException):
    """An index out of bounds."""


user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
index_checks = frozenset({OOBError})
div_checks = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks
JaxRuntimeError = JaxException
ErrorCategory = type[JaxException]

Out = object


class Error:
    """What a checked function reports. None exists: `checkify` raises NotImplementedError."""


def _unsupported(name: str) -> Exception:
    return NotImplementedError(
        f"checkify.{name} is not supported yet; jax.debug.callback can test values at run time"
    )


def checkify(f: Callable, errors=user_checks) -> Callable:
    """Not supported yet: raises NotImplementedError."""
    raise _unsupported("checkify")


def check(pred, msg: str, *fmt_args, debug: bool = False, **fmt_kwargs) -> None:
    """Not supported yet: raises NotImplementedError."""
    raise _unsupported("check")


def debug_check(pred, msg: str, *fmt_args, **fmt_kwargs) -> None:
    """Not supported yet: raises NotImplementedError."""
    raise _unsupported("debug_check")


def check_error(error: Error) -> None:
    """Not supported yet: raises NotImplementedError."""
    raise _unsupported("check_error")
