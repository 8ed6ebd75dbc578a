"""What both bridges know of programs that TensorFlow runs."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

from bedrax.core.columns import Column

# Primitives that are TensorFlow functions.
tf_calls: Final = Column("TF call", signature="fun(*tensors, **params) -> list of tensors")

# While a program is made that TensorFlow will run: the concrete functions that it calls by index (None otherwise).
tf_functions: ContextVar[list[Any] | None] = ContextVar("tf_functions", default=None)

# Whether a TensorFlow function runs, or is traced, because a program of ours calls it.
in_tf_call: ContextVar[bool] = ContextVar("in_tf_call", default=False)
