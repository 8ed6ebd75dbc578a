from bedrax.core.dtypes import (  # Flax, linen.fp8_ops; Equinox: TypePromotionError
    TypePromotionError as TypePromotionError,
    canonicalize_dtype as canonicalize_dtype,
    extended as extended,
    finfo as finfo,
    float0 as float0,
    iinfo as iinfo,
    issubdtype as issubdtype,
    prng_key as prng_key,
    to_complex_dtype as to_complex_dtype,  # tinygp
)
from bedrax.lax.lattice import result_type as result_type  # optree
from bedrax.extend.element_dtypes import (
    ElementDType as _ElementDType,
    supports_inf as supports_inf,
)  # Flax, linen.fp8_ops
from numpy import dtype as _dtype

DType = _dtype

ExtendedDType = _ElementDType
