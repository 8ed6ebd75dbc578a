"""Options of functions for neural networks."""

from __future__ import annotations

from typing import Final

from bedrax.core.config import flag

softmax_custom_jvp: Final = flag(
    "jax_softmax_custom_jvp", False, "softmax has a derivative rule of its own", keyed=True
)
