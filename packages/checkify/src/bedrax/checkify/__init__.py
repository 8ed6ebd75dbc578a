"""Run-time checks whose errors are values: `checkify` returns a function that also returns its first error."""

from bedrax.checkify import assertions, errors, trace
from bedrax.checkify.assertions import *  # noqa: F403
from bedrax.checkify.errors import *  # noqa: F403
from bedrax.checkify.trace import *  # noqa: F403

__all__ = [*assertions.__all__, *errors.__all__, *trace.__all__]
