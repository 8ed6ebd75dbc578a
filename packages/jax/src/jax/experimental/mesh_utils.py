"""`jax.experimental.mesh_utils`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"bedrax.parallel.device_meshes": ("create_device_mesh", "create_hybrid_device_mesh", "device_kind_handler_dict")},
)
