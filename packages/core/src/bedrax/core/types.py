"""Types for annotations."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np

from bedrax.core.array import Array

# What array functions accept where they convert: arrays, NumPy's, and scalars. No lists.
ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex


class SupportsDType(Protocol):
    """Anything with a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
