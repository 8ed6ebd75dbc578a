"""The primitive that makes an array of a symbolic dimension."""

from __future__ import annotations

from typing import Final

import numpy as np

from bedrax.core import dtypes
from bedrax.core.avals import ShapedArray
from bedrax.core.tracing import Primitive
from bedrax.numpy_backend.tables import numpy_rules

dim_as_value_p: Final = Primitive("dim_as_value", "dimensions")


def value_type() -> ShapedArray:
    """The type of the array."""
    return ShapedArray((), dtypes.canonicalize_dtype(np.dtype(np.int64)), True)


@dim_as_value_p.abstract
def _dim_as_value_shape(*, dim):
    return value_type()


def _evaluate(*, dim):
    raise NotImplementedError(
        f"The symbolic dimension '{dim}' has no value here: symbolic dimensions become values in programs that are"
        " exported (or converted) with symbolic shapes, where arguments determine them. It seems that a symbolic shape"
        " is used outside of export"
    )


dim_as_value_p.impl = _evaluate
numpy_rules.absent(dim_as_value_p, why="a symbolic dimension has no value before a program is specialized")
