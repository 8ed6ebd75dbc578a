from bedrax.extend.literals import (
    TypedComplex as TypedComplex,
    TypedFloat as TypedFloat,
    TypedInt as TypedInt,
    TypedNdArray as TypedNdArray,
)
