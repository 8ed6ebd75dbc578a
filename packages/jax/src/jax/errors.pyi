from bedrax.core.errors import (
    ConcretizationTypeError as ConcretizationTypeError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation, JAXIndexError as JAXIndexError,
    JAXTypeError as JAXTypeError, JaxprTypeError as JaxprTypeError,
    KeyReuseError as KeyReuseError, NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
    UnexpectedTracerError as UnexpectedTracerError,
)  # fmt: skip
from bedrax.xla_backend import JaxRuntimeError as JaxRuntimeError
