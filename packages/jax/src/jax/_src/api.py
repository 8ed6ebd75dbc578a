"""`jax._src.api`: names that the public guide to primitives uses."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.autodiff": (
            "grad",
            "hessian",
            "jacfwd",
            "jacrev",
            "jvp",
            "linear_transpose",
            "linearize",
            "value_and_grad",
            "vjp",
        ),
        "bedrax.batching": ("vmap",),
        "bedrax.core.staging": ("eval_shape", "make_jaxpr"),
        "bedrax.xla_backend": ("jit",),
    },
)
