"""What `convert` was told."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Options:
    """What `convert` was told, for the function and its derivatives.

    Attributes:
      enable_xla, native: whether XLA's operations are allowed, whether the program is StableHLO.
      platforms: those of native programs.
      disabled_checks: `DisabledSafetyCheck`s.
      gradients: up to which order a saved model has gradients; None: no gradients anywhere.
      checks: whether graphs check the sizes of their arguments. Those of derivatives have been.
      compiled: whether the graph becomes a TensorFlow function that XLA compiles.
    """

    enable_xla: bool = True
    native: bool = False
    platforms: Sequence[str] | None = None
    disabled_checks: Sequence[Any] = ()
    gradients: int | None = 1
    checks: bool = True
    compiled: bool = False
