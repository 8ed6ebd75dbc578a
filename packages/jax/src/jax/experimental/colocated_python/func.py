"""`jax.experimental.colocated_python.func`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"bedrax.processes.colocated": ("FunctionInfo", "Specialization", "is_prng_key_dtype", "make_callable")},
    renamed={"typing": {"ShapeDtypeStructTree": "Any"}},
)
