"""`jax.ad_checkpoint`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.autodiff.checkpoint_policies": ("Offloadable", "Recompute", "Saveable"),
        "bedrax.autodiff.checkpointing": ("print_saved_residuals",),
        "bedrax.lax.primitives.calls": ("checkpoint_name_fwd", "name_p"),
        "bedrax.autodiff": ("checkpoint_name",),
        ".": ("checkpoint_policies",),
    },
)
