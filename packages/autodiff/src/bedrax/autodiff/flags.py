"""Options of differentiation."""

from __future__ import annotations

from typing import Final

from bedrax.core.config import flag

disable_bwd_checks: Final = flag(
    "jax_disable_bwd_checks",
    False,
    "what the bwd rules of custom_vjp return is passed on as it is, whatever its type",
    keyed=True,
)
log_checkpoint_residuals: Final = flag(
    "jax_log_checkpoint_residuals", False, "log at WARNING what a checkpointed function saves for its backward pass"
)
