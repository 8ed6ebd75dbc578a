from bedrax.core.errors import (
    ConcretizationTypeError as ConcretizationTypeError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    JAXIndexError as JAXIndexError,
    JAXTypeError as JAXTypeError,
    JaxprTypeError as JaxprTypeError,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
    UnexpectedTracerError as UnexpectedTracerError,
)
from bedrax.numpy.index_plans import NonConcreteBooleanIndexError as NonConcreteBooleanIndexError
from bedrax.random.reuse import KeyReuseError as KeyReuseError
from bedrax.xla_backend import JaxRuntimeError as JaxRuntimeError
