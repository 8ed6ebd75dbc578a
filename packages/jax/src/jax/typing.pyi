from bedrax.core.types import ArrayLike as ArrayLike, DTypeLike as DTypeLike
