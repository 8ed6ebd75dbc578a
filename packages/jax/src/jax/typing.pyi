from bedrax.core.array import ArrayLike as ArrayLike, DTypeLike as DTypeLike
