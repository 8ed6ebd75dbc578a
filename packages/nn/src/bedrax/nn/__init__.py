"""Activations, attention and initializers for neural networks (`jax.nn`).

A name is imported from its module when it is first asked for.
"""

from __future__ import annotations

import importlib

_HOMES: dict[str, tuple[str, ...]] = {
    "bedrax.nn.activations": (
        "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity",
        "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "mish", "one_hot", "relu", "relu6", "selu", "sigmoid",
        "silu", "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "standardize",
        "swish",
    ),
    "bedrax.nn.attention": ("dot_product_attention",),
    "bedrax.nn.scaled": ("get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"),
    "bedrax.numpy.special": ("logmeanexp", "logsumexp"),
    "bedrax.numpy": ("tanh",),
}  # fmt: skip

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted((*_HOME_OF, "initializers"))


def __getattr__(name: str):
    if name == "initializers":
        return importlib.import_module("bedrax.nn.initializers")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'bedrax.nn' has no attribute '{name}'")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__():
    return __all__
