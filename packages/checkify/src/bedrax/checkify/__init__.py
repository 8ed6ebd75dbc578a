"""Run-time checks as values: `checkify` makes of a function one that reports what went wrong in it."""

from bedrax.checkify import assertions, errors, trace
from bedrax.checkify.assertions import *  # noqa: F403
from bedrax.checkify.errors import *  # noqa: F403
from bedrax.checkify.trace import *  # noqa: F403

__all__ = [*assertions.__all__, *errors.__all__, *trace.__all__]
