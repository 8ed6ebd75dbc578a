from bedrax.core.typing import ArrayLike as ArrayLike, DTypeLike as DTypeLike
