"""Activations, attention and initializers for neural networks (`jax.nn`), each loaded on first use."""

import bedrax.numpy_backend  # noqa: F401  # it evaluates, unless a backend of a higher rank is installed
from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        ".": ("initializers",),
        ".activations": (
            "celu",
            "elu",
            "gelu",
            "glu",
            "hard_sigmoid",
            "hard_silu",
            "hard_swish",
            "hard_tanh",
            "identity",
            "leaky_relu",
            "log1mexp",
            "log_sigmoid",
            "log_softmax",
            "mish",
            "one_hot",
            "relu",
            "relu6",
            "selu",
            "sigmoid",
            "silu",
            "soft_sign",
            "softmax",
            "softplus",
            "sparse_plus",
            "sparse_sigmoid",
            "squareplus",
            "standardize",
            "swish",
        ),
        ".attention": ("dot_product_attention",),
        ".block_scaled": ("get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"),
        "bedrax.numpy.logsumexp": ("logmeanexp", "logsumexp"),
        "bedrax.numpy": ("tanh",),
    },
)
