"""`jax.ffi`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.core.avals": ("abstract_token",),
        "bedrax.xla_backend.ffi": (
            "build_ffi_lowering_function",
            "ffi_call",
            "ffi_lowering",
            "include_dir",
            "pycapsule",
            "register_ffi_target",
            "register_ffi_target_as_batch_partitionable",
            "register_ffi_type",
            "register_ffi_type_id",
        ),
    },
)
