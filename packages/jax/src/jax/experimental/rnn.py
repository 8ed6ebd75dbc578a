"""`jax.experimental.rnn`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.lax.primitives.elementwise": ("tanh",),
        "bedrax.libraries.rnn": "*",
        "bedrax.nn.activations": ("sigmoid",),
    },
    renamed={"bedrax.core.array": {"PRNGKeyArray": "Array"}},
)
