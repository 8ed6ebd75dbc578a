"""`jax.errors`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.core.errors": (
        "ConcretizationTypeError", "InconclusiveDimensionOperation", "JAXIndexError", "JAXTypeError",
        "JaxRuntimeError", "JaxprTypeError", "KeyReuseError", "NonConcreteBooleanIndexError",
        "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError",
        "UnexpectedTracerError",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.core.errors import (
        ConcretizationTypeError as ConcretizationTypeError,
        InconclusiveDimensionOperation as InconclusiveDimensionOperation, JAXIndexError as JAXIndexError,
        JAXTypeError as JAXTypeError, JaxRuntimeError as JaxRuntimeError, JaxprTypeError as JaxprTypeError,
        KeyReuseError as KeyReuseError, NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
        TracerArrayConversionError as TracerArrayConversionError,
        TracerBoolConversionError as TracerBoolConversionError,
        TracerIntegerConversionError as TracerIntegerConversionError,
        UnexpectedTracerError as UnexpectedTracerError,
    )  # fmt: skip
