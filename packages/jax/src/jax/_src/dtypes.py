"""`jax._src.dtypes`: needed by Flax (linen.fp8_ops) and Equinox (TypePromotionError)."""

from bedrax.core.dtypes import (
    ExtendedDType,
    TypePromotionError,
    canonicalize_dtype,
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
    prng_key,
)
from numpy import (
    dtype as DType,
)
