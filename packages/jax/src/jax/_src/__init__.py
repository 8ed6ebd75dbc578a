"""Internals that well-known libraries reach for; each module names who needs it."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {},
    (
        "ad_util", "checkify", "compiler", "config", "core", "dispatch", "distributed", "dtypes", "flatten_util",
        "interpreters", "state", "traceback_util", "tree_util",
    ),
)  # fmt: skip
