"""Options of kernels."""

from bedrax.core.config import flag

enable_debug_checks = flag(
    "jax_pallas_enable_debug_checks", False, "what kernels check by debug_check is checked", keyed=True
)
