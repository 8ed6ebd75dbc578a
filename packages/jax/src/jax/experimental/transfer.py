"""`jax.experimental.transfer`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.extend.unsupported": ("make_error_array",),
        "bedrax.xla_backend.door.runtime": ("TransferConnection", "TransferServer", "start_transfer_server"),
    },
)
