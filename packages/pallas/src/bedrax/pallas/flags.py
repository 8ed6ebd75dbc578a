"""Options of kernels."""

from __future__ import annotations

from typing import Final

from bedrax.core.config import flag

enable_debug_checks: Final = flag(
    "jax_pallas_enable_debug_checks", False, "debug_check in kernels checks its condition", keyed=True
)
