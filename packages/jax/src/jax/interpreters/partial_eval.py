"""`jax.interpreters.partial_eval`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.extend.partial_eval": (
            "JaxprTracer",
            "Val",
            "abstract_eval_fun",
            "close_jaxpr",
            "convert_constvars_jaxpr",
            "dce_jaxpr",
            "dce_jaxpr_call_rule",
            "dce_jaxpr_closed_call_rule",
            "dce_jaxpr_consts",
            "dce_rules",
            "lower_jaxpr2",
            "move_binders_to_back",
            "partial_eval_jaxpr_nounits",
            "prune_closed_jaxpr_outputs",
            "trace_to_jaxpr_dynamic",
            "trace_to_jaxpr_nounits",
        ),
        "bedrax.extend.partial_values": ("PartialVal",),
    },
    renamed={"bedrax.core.staging": {"DynamicJaxprTracer": "StagedTracer"}},
)
