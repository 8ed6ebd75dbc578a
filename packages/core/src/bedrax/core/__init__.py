"""The kernel: types, primitives, tracing, the jaxpr and its passes."""

from bedrax.core import offers as _offers
from bedrax.core.lazy import attach

_offers.offer("text of programs", "bedrax.core.printing:jaxpr_text")
_offers.offer("text of equations", "bedrax.core.printing:eqn_text")

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        ".array": ("Array",),
        ".avals": ("ShapeDtypeStruct", "ShapedArray", "typeof"),
        ".config": ("debug_infs", "debug_nans", "disable_jit", "enable_x64"),
        ".ir": ("Jaxpr", "eval_jaxpr"),
        ".jitting": ("Inline", "jit"),
        ".staging": ("eval_shape", "make_jaxpr"),
        ".tracing": ("Primitive", "Tracer"),
    },
    renamed={".config": {"checking_leaks": "check_tracer_leaks"}},
)
