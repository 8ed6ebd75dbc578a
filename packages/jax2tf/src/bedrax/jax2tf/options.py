"""The options of `convert`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of `convert`, for the function and its derivatives.

    Attributes:
      enable_xla, native: whether XLA's operations are permitted, whether the program is StableHLO.
      platforms: the platforms of native programs.
      disabled_checks: `DisabledSafetyCheck`s.
      gradients: the highest order of gradients in a saved model; None: no gradients at all.
      checks: whether graphs check the sizes of their arguments. Derivatives need no check.
      compiled: whether the graph becomes a TensorFlow function that XLA compiles.
    """

    enable_xla: bool = True
    native: bool = False
    platforms: Sequence[str] | None = None
    disabled_checks: Sequence[Any] = ()
    gradients: int | None = 1
    checks: bool = True
    compiled: bool = False
