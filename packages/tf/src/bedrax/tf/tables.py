"""The tables of both bridges for programs that TensorFlow runs."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

from bedrax.core.columns import Column

# Primitives that are TensorFlow functions.
tf_calls: Final = Column("TF call", signature="fun(*tensors, **params) -> list of tensors")

# The concrete functions that a native program calls by index, while it is made (None otherwise).
tf_functions: ContextVar[list[Any] | None] = ContextVar("tf_functions", default=None)

# Whether a TensorFlow function runs, or is traced, inside a call from a program.
in_tf_call: ContextVar[bool] = ContextVar("in_tf_call", default=False)
