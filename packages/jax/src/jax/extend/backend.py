"""`jax.extend.backend`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.xla_backend.clients": ("backends", "clear_backends", "get_backend"),
        "bedrax.xla_backend.services": (
            "backend_xla_version",
            "clear_in_memory_compilation_cache",
            "get_compile_options",
            "register_backend_cache",
            "register_backend_factory",
        ),
        "bedrax.xla_backend.door.proxy": ("ifrt_proxy",),
    },
    renamed={"bedrax.xla_backend.clients": {"get_default_device": "default_device"}},
)
