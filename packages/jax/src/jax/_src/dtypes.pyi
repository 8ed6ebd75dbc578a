from bedrax.core.dtypes import (  # Flax, linen.fp8_ops; Equinox: TypePromotionError
    ExtendedDType as ExtendedDType, TypePromotionError as TypePromotionError,
    canonicalize_dtype as canonicalize_dtype, extended as extended, finfo as finfo, float0 as float0,
    iinfo as iinfo, issubdtype as issubdtype, prng_key as prng_key,
)  # fmt: skip
from numpy import dtype as _dtype

DType = _dtype
