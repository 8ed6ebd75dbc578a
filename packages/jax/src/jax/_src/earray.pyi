from bedrax.extend.element_dtypes import EArray as EArray  # Flax, linen.fp8_ops
