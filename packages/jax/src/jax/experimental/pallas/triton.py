"""`jax.experimental.pallas.triton`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.pallas.chips": (
            "CUSTOM_CALL_TARGET_NAME",
            "GpuInfo",
            "GpuVersion",
            "get_gpu_info",
            "get_gpu_info_from_version",
            "is_gpu_device",
        ),
        "bedrax.pallas.masked": (
            "CompilerParams",
            "approx_tanh",
            "atomic_add",
            "atomic_and",
            "atomic_cas",
            "atomic_max",
            "atomic_min",
            "atomic_or",
            "atomic_xchg",
            "atomic_xor",
            "debug_barrier",
            "dot",
            "load",
            "max_contiguous",
            "store",
        ),
        "bedrax.extend.refused.triton": "*",
    },
)
