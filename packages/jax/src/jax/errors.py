"""`jax.errors`: the public names, from the layers that own them."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bedrax.core.errors": (
            "ConcretizationTypeError",
            "InconclusiveDimensionOperation",
            "JAXIndexError",
            "JAXTypeError",
            "JaxprTypeError",
            "TracerArrayConversionError",
            "TracerBoolConversionError",
            "TracerIntegerConversionError",
            "UnexpectedTracerError",
        ),
        "bedrax.numpy.index_plans": ("NonConcreteBooleanIndexError",),
        "bedrax.parallel.explicit": ("ShardingTypeError",),
        "bedrax.random.reuse": ("KeyReuseError",),
        "bedrax.xla_backend": ("JaxRuntimeError",),
    },
)
