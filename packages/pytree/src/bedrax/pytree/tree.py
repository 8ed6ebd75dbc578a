"""The tree functions under their short names: `tree.map` is `tree_map`."""

from __future__ import annotations

import dataclasses
from typing import Any

from .functions import tree_all as all
from .functions import tree_broadcast as broadcast
from .functions import tree_flatten as flatten
from .functions import tree_leaves as leaves
from .functions import tree_map as map
from .functions import tree_map_with_path as map_with_path
from .functions import tree_reduce as reduce
from .functions import tree_reduce_associative as reduce_associative
from .functions import tree_structure as structure
from .functions import tree_transpose as transpose
from .functions import tree_unflatten as unflatten
from .paths import tree_flatten_with_path as flatten_with_path
from .paths import tree_leaves_with_path as leaves_with_path


def static(**kwargs: Any) -> Any:
    """`dataclasses.field` for a field that `register_dataclass` takes as metadata.

    Takes the keywords of `dataclasses.field`; other entries of `metadata` are kept.

    Examples:

      >>> import dataclasses
      >>> @jax.tree_util.register_dataclass
      ... @dataclasses.dataclass
      ... class Layer:
      ...     weights: list
      ...     name: str = jax.tree.static(default="dense")
      ...
      >>> jax.tree.map(lambda x: 2 * x, Layer([1., 2.]))
      Layer(weights=[2.0, 4.0], name='dense')
    """
    metadata = {**(kwargs.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=metadata, **kwargs)


__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]
