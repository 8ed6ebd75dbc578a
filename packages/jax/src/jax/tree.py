"""`jax.tree`: the public names, from the layers that own them."""

from typing import TYPE_CHECKING

from bedrax.core.lazy import attach

_HOMES = {
    "bedrax.pytree.tree": (
        "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
        "map_with_path", "reduce", "reduce_associative", "static", "structure", "transpose", "unflatten",
    ),
}  # fmt: skip
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)

if TYPE_CHECKING:
    from bedrax.pytree.tree import (
        all as all, broadcast as broadcast, flatten as flatten, flatten_with_path as flatten_with_path,
        leaves as leaves, leaves_with_path as leaves_with_path, map as map, map_with_path as map_with_path,
        reduce as reduce, reduce_associative as reduce_associative, static as static,
        structure as structure, transpose as transpose, unflatten as unflatten,
    )  # fmt: skip
