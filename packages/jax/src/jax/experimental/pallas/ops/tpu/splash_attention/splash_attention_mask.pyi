from bedrax.extend.unsupported import (
    CausalMask as CausalMask,
    MultiHeadMask as MultiHeadMask,
    NumpyMask as NumpyMask,  # keras
)
