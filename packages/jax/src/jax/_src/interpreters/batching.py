"""`jax._src.interpreters.batching`: names that BrainState uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"bedrax.batching.trace": ("BatchTrace", "BatchTracer"), "bedrax.extend.interpreters": ("make_iota", "to_elt")},
)
