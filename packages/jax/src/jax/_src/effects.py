"""`jax._src.effects`: names that Oryx uses, and the sets in which libraries register effects of their own."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.core.effects": (
            "Effect",
            "EffectTypeSet",
            "Effects",
            "control_flow_allowed_effects",
            "custom_derivatives_allowed_effects",
            "lowerable_effects",
            "no_effects",
            "ordered_effects",
            "partial_eval_kept_effects",
            "remat_allowed_effects",
            "shardable_ordered_effects",
        )
    },
)
